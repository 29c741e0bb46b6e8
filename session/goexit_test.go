package session_test

import (
	"context"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// outageAndLoss has the server refuse connections for a while, and then expires the session. It fails the test
// unless the manager has a session again after both.
func outageAndLoss(t *testing.T, srv *zktest.Server, m *session.Manager, s *session.Session) {
	t.Helper()
	srv.Refuse(true)
	srv.Disconnect()
	time.Sleep(time.Second)
	srv.Refuse(false)
	time.Sleep(5 * time.Second)
	if m.State() != session.Connected || s.Err() != nil {
		t.Errorf("5 s after an outage of 1 s: %v, %v", m.State(), s.Err())
	}
	must(t, srv.Expire(t.Context(), s.ID()))
	<-s.Done()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := m.Session(ctx)
	must(t, err)
}

// A dialer that ends its goroutine is a dial that failed.
func TestDialerThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		srv := zktest.Start(t)
		d := srv.Dialer()
		m, s := virtually(t, "h:1", func(ctx context.Context, network, addr string) (net.Conn, error) {
			if dials.Add(1)%4 != 0 {
				runtime.Goexit()
			}
			return d(ctx, network, addr)
		})
		outageAndLoss(t, srv, m, s)
	})
}

// A subscriber whose function ends its goroutine gets all changes all the same, and so does a State hook.
func TestSubscriberThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, hooked, steady history
		srv := zktest.Start(t)
		m, s := virtually(t, "h:1", srv.Dialer(), session.WithTrace(session.Trace{State: func(c session.Change) {
			hooked.add(c)
			runtime.Goexit()
		}}))
		m.Subscribe(func(c session.Change) {
			asked.add(c)
			runtime.Goexit()
		})
		m.Subscribe(steady.add)
		outageAndLoss(t, srv, m, s)
		must(t, m.Close())
		synctest.Wait()
		want := steady.states()
		if got := asked.states(); len(got) != len(want) || len(want) < 5 {
			t.Errorf("the subscriber got %v, want %v", got, want)
		}
		if got := hooked.states(); len(got) < len(want) {
			t.Errorf("the hook got %v, want %v and those before", got, want)
		}
	})
}
