package session_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// slowDown is a network on which so many bytes a second come from the server.
type slowDown struct {
	net.Conn
	rate *atomic.Int64
}

func (c slowDown) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b[:min(len(b), 4096)])
	if rate := c.rate.Load(); rate > 0 {
		time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
	}
	return n, err
}

// An answer that takes long is not cut off while its bytes come, as long as the session can afford to wait. One of 4 s
// arrives at once, one of 7 s in the second try at the latest, with a timeout of 10 s. One that takes
// longer than the session can wait ends with its context, and does not cost the session.
func TestLongAnswer(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		conns int64 // at most
		fails bool
	}{
		{4 * time.Second, 1, false},
		{7 * time.Second, 2, false},
		{9 * time.Second, 10, true},
	} {
		t.Run(fmt.Sprint(c.takes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var rate, conns atomic.Int64
				d := zktest.Start(t).Dialer()
				_, s := virtually(t, "h:1", func(ctx context.Context, network, addr string) (net.Conn, error) {
					conns.Add(1)
					c, err := d(ctx, network, addr)
					return slowDown{c, &rate}, err
				}, session.WithTimeout(10*time.Second), session.WithTickTime(2*time.Second))
				must(t, expect.Err(makeNode(t.Context(), s, "/own", nil)))
				must(t, expect.Err(s.Create(t.Context(), "/d", nil, session.Persistent)))
				const children, name = 2000, 96
				for at := 0; at < children; at += 500 {
					var ops []any
					for i := range 500 {
						ops = append(ops, &zk.CreateRequest{Path: fmt.Sprintf("/d/%0*d", name, at+i)})
					}
					must(t, expect.Err(s.Multi(t.Context(), ops...)))
				}
				time.Sleep(20 * time.Second)
				conns.Store(1)
				rate.Store(children * (name + 4) * int64(time.Second) / int64(c.takes))
				ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
				defer cancel()
				names, _, err := s.Children(ctx, "/d")
				switch {
				case c.fails:
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%d names, %v: want the end of the context", len(names), err)
					}
				case err != nil || len(names) != children:
					t.Errorf("%d names, %v", len(names), err)
				}
				if n := conns.Load(); n > c.conns {
					t.Errorf("%d connections, want at most %d", n, c.conns)
				}
				rate.Store(0)
				must(t, s.Err())
			})
		})
	}
}

// A lock whose request is longer than the server takes fails after three connections, with an error that says so. The error of
// a request that is sent once says so too. A request that the server takes does not fail. The session goes on.
func TestRequestTooLong(t *testing.T) {
	const limit = 32 << 10
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.MaxPacket(limit))
		var conns atomic.Int64
		d := srv.Dialer()
		m, s := virtually(t, "h:1", func(ctx context.Context, network, addr string) (net.Conn, error) {
			conns.Add(1)
			return d(ctx, network, addr)
		}, session.WithTimeout(10*time.Second))
		must(t, expect.Err(makeNode(t.Context(), s, "/own", nil)))
		must(t, expect.Err(s.Create(t.Context(), "/n", nil, session.Persistent)))
		must(t, expect.Err(s.Set(t.Context(), "/n", make([]byte, limit-100), -1)))
		synctest.Wait() // the manager has a connection of its own at first, to learn the servers' tick
		conns.Store(0)
		q, err := queue.New(m, "/lock")
		must(t, err)
		_, err = q.Acquire(t.Context(), queue.Request{Kind: queue.Mutex(), Data: make([]byte, 60<<10)})
		if !errors.Is(err, session.ErrTooLong) || !strings.Contains(fmt.Sprint(err), "jute.maxbuffer") {
			t.Errorf("a lock: %v, want ErrTooLong", err)
		}
		if n := conns.Load(); n > 3 {
			t.Errorf("the lock took %d connections", n)
		}
		must(t, expect.Err(s.Set(t.Context(), "/n", make([]byte, limit-100), -1)))
		_, err = s.Set(t.Context(), "/n", make([]byte, 60<<10), -1)
		if !errors.Is(err, session.ErrUncertain) || !strings.Contains(err.Error(), "jute.maxbuffer") {
			t.Errorf("%v, want ErrUncertain: a set is not repeated", err)
		}
		must(t, s.Err())
	})
}
