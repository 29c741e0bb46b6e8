package session_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

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

// A request that no context can end runs in the goroutine of its caller.
func TestEndlessRequestNeedsNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		_, s := virtually(t, "zookeeper:2181", srv.Dialer())
		held := srv.HoldReply(zktest.Any(zktest.OpGetData))
		for _, c := range []struct {
			name string
			ctx  context.Context
			want bool
		}{{"endless", context.WithoutCancel(t.Context()), true}, {"of the test", t.Context(), false}} {
			done := make(chan struct{})
			go func() { defer close(done); namedForTheTrace(c.ctx, s) }()
			synctest.Wait()
			all := make([]byte, 1<<20)
			all = all[:runtime.Stack(all, true)]
			got := slices.ContainsFunc(strings.Split(string(all), "\n\n"), func(one string) bool {
				return strings.Contains(one, "namedForTheTrace") && strings.Contains(one, "zk.(*Conn).request(")
			})
			if got != c.want {
				t.Errorf("%s: the caller's goroutine makes the request: %v, want %v", c.name, got, c.want)
			}
			held.Release()
			<-done
			held = srv.HoldReply(zktest.Any(zktest.OpGetData))
		}
		held.Release()
	})
}

func namedForTheTrace(ctx context.Context, s *session.Session) { _, _, _ = s.Get(ctx, "/") }
