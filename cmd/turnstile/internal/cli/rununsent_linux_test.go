package cli

import (
	"context"
	"net"
	"syscall"
	"testing"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/supervise"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// The connections of run hold back as few bytes in the kernel as those of the library, with TLS too.
func TestRunBoundsUnsent(t *testing.T) {
	secure, ca, key := startTLS(t, testserver.Server(t).Addr(0))
	for what, c := range map[string]connectionFlags{
		"plain": {servers: testserver.Server(t).ConnectString()},
		"TLS":   {servers: secure, tls: tlsFlags{CACert: ca, Cert: key, Key: key}},
	} {
		guard, err := supervise.StartGuard(supervise.Streams{})
		if err != nil {
			t.Fatal(err)
		}
		defer guard.Close()
		dial, err := (&App{connection: c}).guardSession(guard)
		if err != nil {
			t.Fatal(err)
		}
		dialled := make(chan net.Conn, 1)
		m := testserver.Connect(t, c.servers, session.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err == nil {
				select {
				case dialled <- conn:
				default:
				}
			}
			return conn, err
		}))
		testserver.Session(t, m)
		if n := unsentOf(t, <-dialled); n <= 0 || n > 64<<10 {
			t.Errorf("%s: TCP_NOTSENT_LOWAT is %d", what, n)
		}
	}
}

// unsentOf returns TCP_NOTSENT_LOWAT of the TCP connection below c.
func unsentOf(t *testing.T, c net.Conn) (n int) {
	t.Helper()
	for {
		outer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = outer.NetConn()
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	const tcpNotsentLowat = 25
	if err := raw.Control(func(fd uintptr) {
		n, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotsentLowat)
	}); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}
