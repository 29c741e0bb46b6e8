package queue

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// A turn is lost while the Hold hook runs. The lease says so at once, and the hooks are told once the first has returned.
func TestLossIsToldOnce(t *testing.T) {
	var losses, ends atomic.Int32
	m := testserver.Connect(t, testserver.Server(t).Addr(0), session.WithTrace(session.Trace{
		Hold: func(ctx context.Context, _ session.HoldInfo) func(error) {
			l, _ := LeaseFrom(ctx)
			l.t.loseNode()
			expect.Match(t, "the lease within the hook", l.Err(), session.ErrLost)
			return func(error) { ends.Add(1) }
		},
		Loss: func(context.Context, session.HoldInfo, error) { losses.Add(1) },
	}))
	q, err := New(m, testserver.Path(t))
	expect.NoError(t, err)
	l, err := q.Acquire(expect.Patient(t), Request{Kind: Mutex()})
	expect.NoError(t, err)
	expect.Receive(t, "the end of the lease", l.Done())
	expect.Match(t, "the lease", l.Err(), session.ErrLost)
	expect.NoError(t, m.Close()) // it waits for the hooks
	if losses.Load() != 1 || ends.Load() != 1 {
		t.Errorf("told of %d losses and %d ends", losses.Load(), ends.Load())
	}
}
