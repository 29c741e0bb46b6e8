package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

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
