package queue_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// stuck is a connection to a peer that reads nothing while full is set.
type stuck struct {
	net.Conn
	full   *atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (c *stuck) Write(b []byte) (int, error) {
	if c.full.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *stuck) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// Calls that are given up while nothing can be sent send nothing later.
func TestAbandonedSendNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		var full atomic.Bool
		m, err := session.Connect(t.Context(), "zookeeper:2181", session.WithTimeout(long), session.WithTickTime(2*time.Second),
			session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
			session.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := srv.Dialer()(ctx, network, addr)
				full.Store(false)
				return &stuck{Conn: c, full: &full, closed: make(chan struct{})}, err
			}))
		mustBe(t, err, nil)
		defer m.Close()
		q := on(t, m, "/locks/one")
		release(t, acquire(t, q))
		holder := acquire(t, q)
		_, _ = holder.Token(t.Context())
		srv.ResetRequests()
		full.Store(true)
		const calls = 1000
		var all sync.WaitGroup
		for range calls {
			time.Sleep(5 * time.Millisecond)
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := q.Acquire(ctx, ask)
				mustBe(t, err, context.DeadlineExceeded)
			})
		}
		all.Wait()
		for full.Load() { // until the connection is given up
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		if n := srv.Count(zktest.Any(zktest.OpCreate)); n > calls/50 {
			t.Errorf("%d nodes were created for calls that had been given up", n)
		}
		names, _, err := testserver.Session(t, m).Children(t.Context(), "/locks/one")
		if err != nil || len(names) != 1 || holder.Err() != nil {
			t.Errorf("children %v, %v; the holder: %v", names, err, holder.Err())
		}
	})
}
