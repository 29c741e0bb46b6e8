package lockz_test

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/session"
)

// Hooks of others that panic take nothing from the page, and leave nothing there that is not held.
func TestOthersPanic(t *testing.T) {
	const acquire, acquired, hold, held = "acquire", "acquired", "hold", "held"
	for _, where := range []string{acquire, acquired, hold, held} {
		t.Run(where, func(t *testing.T) {
			at := func(place string) {
				if place == where {
					panic(where)
				}
			}
			m := connect(t, session.WithTrace(session.Trace{
				Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
					at(acquire)
					return ctx, func(session.AcquireResult) { at(acquired) }
				},
				Hold: func(context.Context, session.HoldInfo) func(error) {
					at(hold)
					return func(error) { at(held) }
				},
			}))
			page := lockz.Handler(m)
			mx := mutex(t, m, testserver.Path(t))
			lease, err := mx.Acquire(t.Context())
			must(t, err)
			if m := pageOf(t, page).Managers[0]; len(m.Holds) != 1 || len(m.Waits) != 0 {
				t.Errorf("while it is held, the page shows %v", lines(m))
			}
			must(t, lease.Release(t.Context()))
			if m := pageOf(t, page).Managers[0]; len(m.Holds)+len(m.Waits) != 0 {
				t.Errorf("the page shows %v", lines(m))
			}
		})
	}
}
