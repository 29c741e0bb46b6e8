package zklock_test

import (
	"context"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// MultiLeaseFrom returns the leases of all locks from the context of a Do, in the order of Multi's arguments.
// It returns none while some of the locks are not yet taken.
func TestMultiLeaseFrom(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
		none := func(ctx context.Context) {
			if l, ok := zklock.MultiLeaseFrom(ctx); ok {
				t.Errorf("a lease before there is one: %v", l)
			}
		}
		none(t.Context())
		m := connect(session.WithTrace(session.Trace{
			Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
				none(ctx)
				return ctx, nil
			},
		}))
		all := newMulti(t, newMutex(t, m, "/locks/b"), newMutex(t, m, "/locks/a"))
		err := all.Do(t.Context(), func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			l, ok := zklock.MultiLeaseFrom(ctx)
			if !ok {
				t.Fatal("no lease")
			}
			if leases := l.Leases(); len(leases) != 2 || !strings.HasPrefix(leases[0].Path(), "/locks/b/") {
				t.Errorf("leases %v", leases)
			}
			return l.Err()
		})
		must(t, err)
	})
}
