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

// Requests with the context of a lease that is over are not sent.
func TestOverContextAcquiresNothing(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		l := acquire(t, on(t, m, "/locks/one"))
		inside, cancel := l.Context(t.Context())
		defer cancel()
		release(t, l)
		server.ResetRequests()
		_, err := on(t, m, "/locks/two").Acquire(inside, queue.Request{Kind: mutex})
		mustBe(t, err, context.Canceled)
		if n := server.Count(inDir("/locks/two")); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}
