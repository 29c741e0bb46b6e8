package queue_test

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// A Hold hook gets the lease. If the lease ends before the hook returns, the function that the hook
// returns is called all the same, once.
func TestLeaseEndsInHoldHook(t *testing.T) {
	var ends []error
	q := client(t, testserver.Path(t), session.WithTrace(session.Trace{
		Hold: func(ctx context.Context, _ session.HoldInfo) func(error) {
			l, ok := queue.LeaseFrom(ctx)
			if !ok {
				t.Error("the hook got no lease")
				return nil
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = l.Release(patient(t)) // by somebody who got the lease from the hook
			}()
			<-ended
			return func(err error) { ends = append(ends, err) }
		},
	}))
	l, err := q.Acquire(patient(t), queue.Request{Kind: mutex})
	mustBe(t, err, nil)
	mustBe(t, l.Err(), queue.ErrReleased)
	if len(ends) != 1 || ends[0] != nil {
		t.Errorf("the hook was told %v, want a release, once", ends)
	}
}
