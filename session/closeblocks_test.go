package session_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// stuckConn is a connection that does not close before it may.
type stuckConn struct {
	net.Conn
	free chan struct{}
}

func (c *stuckConn) Close() error {
	<-c.free
	return c.Conn.Close()
}

// Close returns although a connection of the user's dialer does not close.
func TestCloseWithStuckConn(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &stuckConn{c, free}, nil
	}
	m, err := session.Connect(patient(t), testserver.Server(t).ConnectString(), session.WithDialer(dial))
	must(t, err)
	closed := make(chan error, 1)
	go func() { closed <- m.Close() }()
	select {
	case <-closed:
	case <-time.After(testserver.Patience):
		t.Error("Close does not return")
	}
	close(free)
}
