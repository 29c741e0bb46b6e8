package zklock_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// narrow is a connection that takes so many bytes in a second, or any number if rate is 0.
type narrow struct {
	net.Conn
	rate *atomic.Int64
}

func (c narrow) Write(b []byte) (int, error) {
	rate := c.rate.Load()
	if rate == 0 {
		return c.Conn.Write(b)
	}
	for sent := 0; sent < len(b); {
		n := min(len(b)-sent, 1400)
		time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
		if _, err := c.Conn.Write(b[sent : sent+n]); err != nil {
			return sent, err
		}
		sent += n
	}
	return len(b), nil
}

// A session that holds many locks comes back over a slow network, where each holder sets its watch again. That takes
// longer than a session timeout, but the heartbeats do not wait for it, and the session is not lost.
func TestManyHoldersReconnectSlowly(t *testing.T) {
	const timeout, locks, slow = 10 * time.Second, 2000, 20 << 10
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		d := srv.Dialer()
		var rate atomic.Int64
		m, err := session.Connect(t.Context(), "h:1", session.WithTimeout(timeout), session.WithLogger(slog.New(slog.DiscardHandler)),
			session.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := d(ctx, network, addr)
				return narrow{c, &rate}, err
			}))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		var all sync.WaitGroup
		for i := range locks {
			all.Go(func() {
				l, err := zklock.New(m, fmt.Sprintf("/locks/%s/%05d", strings.Repeat("n", 100), i))
				if err == nil {
					err = l.Lock(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		time.Sleep(timeout / 3) // all have their watches
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rate.Store(slow)
		srv.Disconnect()
		time.Sleep(2 * timeout)
		if s.Err() != nil {
			t.Error(s.Err())
		}
	})
}
