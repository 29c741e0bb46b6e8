//go:build unix

package size

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/session"
)

// uplink is a way to a server that takes so many bytes in a second from the client. Its sockets are real, so that
// the kernel of the client takes as many bytes ahead as it does.
func uplink(t *testing.T, target string, bytesPerSecond int) string {
	t.Helper()
	small := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { // those that are accepted have the same
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
		})
	}}
	l, err := small.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	must(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp4", target)
			if err != nil {
				client.Close()
				continue
			}
			both := func() { client.Close(); server.Close() }
			all.Go(func() { defer both(); _, _ = io.Copy(client, server) })
			all.Go(func() { defer both(); copySlowly(server, client, bytesPerSecond) })
		}
	})
	return l.Addr().String()
}

func copySlowly(to, from net.Conn, bytesPerSecond int) {
	buf := make([]byte, 2<<10)
	free := time.Now()
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if now := time.Now(); free.Before(now) {
			free = now
		}
		free = free.Add(time.Duration(n) * time.Second / time.Duration(bytesPerSecond))
		time.Sleep(time.Until(free)) //nolint:forbidigo // that long the bytes take on this network
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// A burst of small requests takes longer than a session timeout on a slow network.
func TestSmallRequestsOnSlowUplink(t *testing.T) {
	longtest.Only(t)
	u := newUser(t, uplink(t, server(t).Addr(0), 100_000), session.WithTimeout(10*time.Second))
	data := make([]byte, 200)
	u.during("5000 creates of 200 bytes at 100 kB/s", func(ctx context.Context) {
		each(t, 5000, func(i int) error {
			_, err := u.s.Create(ctx, fmt.Sprint("/small", i), data, session.Persistent)
			return err
		})
	})
}

// Large requests take longer than a session timeout. While one is sent, nothing can pass it.
func TestLargeRequestsOnSlowUplink(t *testing.T) {
	longtest.Only(t)
	u := newUser(t, uplink(t, server(t).Addr(0), 1_000_000), session.WithTimeout(6*time.Second))
	data := make([]byte, 200_000)
	u.during("40 sets of 200 kB at 1 MB/s", func(ctx context.Context) {
		each(t, 40, func(i int) error {
			path := fmt.Sprint("/large", i)
			if _, err := u.s.Create(ctx, path, nil, session.Persistent); err != nil {
				return err
			}
			_, err := u.s.Set(ctx, path, data, -1)
			return err
		})
	})
}
