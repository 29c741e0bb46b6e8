package zktest_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/zktest"
)

// BenchmarkServer measures a round trip to the in-process server.
func BenchmarkServer(b *testing.B) {
	srv := zktest.Start(b)
	dial := srv.Dialer()
	pipe := func(network, addr string, _ time.Duration) (net.Conn, error) {
		return dial(context.Background(), network, addr)
	}
	for name, opt := range map[string]func() (*zk.Conn, <-chan zk.Event, error){
		"pipe": func() (*zk.Conn, <-chan zk.Event, error) {
			return zk.Connect([]string{"127.0.0.1:1"}, 10*time.Second, zk.WithLogger(quiet{}), zk.WithDialer(pipe))
		},
		"tcp": func() (*zk.Conn, <-chan zk.Event, error) {
			return zk.Connect([]string{srv.Addr()}, 10*time.Second, zk.WithLogger(quiet{}))
		},
	} {
		b.Run(name, func(b *testing.B) {
			conn, _, err := opt()
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			zktest.Eventually(b, 10*time.Second, "a session", func() bool { return conn.State() == zk.StateHasSession })
			for b.Loop() {
				if _, err := conn.Set("/", nil, -1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
