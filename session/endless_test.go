package session_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/goroutines"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A request that no context can end still ends with its session, at the same instant: when the
// session is lost, and when its manager is closed.
func TestEndlessRequestEndsWithTheSession(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*session.Manager)
		want error
	}{
		{"lost", func(*session.Manager) {}, session.ErrLost},
		{"closed", func(m *session.Manager) { m.Close() }, session.ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				m, s := virtually(t, "zookeeper:2181", srv.Dialer())
				srv.Blackhole(zktest.ToClient)
				results := make(chan error, 1)
				go func() { _, _, err := s.Get(context.Background(), "/"); results <- err }()
				synctest.Wait()
				go c.end(m)
				<-s.Done()
				synctest.Wait()
				select {
				case err := <-results:
					wantErr(t, "the request", err, c.want)
				default:
					t.Error("the request goes on after its session")
				}
				srv.Heal()
			})
		})
	}
}

// A request needs no goroutine beside its caller's, whether or not its context can end.
func TestRequestNeedsNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		_, s := virtually(t, "zookeeper:2181", srv.Dialer())
		held := srv.HoldReply(zktest.Any(zktest.OpGetData))
		const callers = 20
		before := goroutines.Count()
		var all sync.WaitGroup
		for i := range callers {
			ctx := t.Context()
			if i%2 == 0 {
				ctx = context.WithoutCancel(ctx)
			}
			all.Go(func() { _, _, _ = s.Get(ctx, "/") })
		}
		synctest.Wait()
		if n := goroutines.Count() - before; n > callers {
			t.Errorf("%d requests in flight have %d goroutines", callers, n)
		}
		held.Release()
		all.Wait()
	})
}
