package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// At the instant at which the session's time runs out, before any of its timers has run, the context
// of a lease says that the lease is lost, and is done.
func TestContextComputedWhenAsked(t *testing.T) {
	for name, look := range map[string]func(ctx context.Context) error{
		"Err":   context.Context.Err,
		"Cause": context.Cause,
		"derived": func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
				l := acquire(t, on(t, m, "/locks/one"))
				inside, cancel := l.Context(t.Context())
				defer cancel()
				early, cancelEarly := context.WithCancel(inside)
				defer cancelEarly()
				time.Sleep(time.Second)
				s := testserver.Session(t, m)
				server.Blackhole(zktest.Both)
				time.Sleep(s.Remaining() - time.Nanosecond)
				if err := look(inside); err != nil {
					t.Fatalf("before the end: %v", err)
				}
				time.Sleep(time.Nanosecond)
				if look(inside) == nil {
					t.Error("the first look says that the lease is held")
				}
				for _, ctx := range []context.Context{inside, early} {
					mustBe(t, ctx.Err(), context.Canceled)
					mustBe(t, context.Cause(ctx), session.ErrLost)
					select {
					case <-ctx.Done():
					default:
						t.Error("Done is open")
					}
				}
				server.Heal()
			})
		})
	}
}

// LeaseFrom returns the lease of a context and of contexts derived from it. The innermost lease
// counts, even after it has ended.
func TestLeaseFrom(t *testing.T) {
	alone(t, func(t *testing.T, _ *zktest.Server, m *session.Manager) {
		want := func(what string, ctx context.Context, want *queue.Lease) {
			t.Helper()
			if got, ok := queue.LeaseFrom(ctx); got != want || ok != (want != nil) {
				t.Errorf("%s: lease %v, %v", what, got, ok)
			}
		}
		want("no lease", t.Context(), nil)
		one, other := acquire(t, on(t, m, "/locks/one")), acquire(t, on(t, m, "/locks/other"))
		outer, cancel := one.Context(t.Context())
		defer cancel()
		want("the lease's context", outer, one)
		derived, cancel := context.WithTimeout(context.WithoutCancel(outer), time.Second)
		defer cancel()
		want("a context derived from it", derived, one)
		inner, cancel := other.Context(derived)
		defer cancel()
		want("a context of another lease within", inner, other)
		want("the context outside of that", derived, one)
		release(t, other)
		release(t, one)
		want("after the release", inner, other)
	})
}
