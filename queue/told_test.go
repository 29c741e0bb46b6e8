package queue

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// A lease is lost while the Hold hook runs, and the goroutine that has found that goes on to tell just when the hook has returned. The
// hooks are told of the loss once.
func TestLossIsToldOnce(t *testing.T) {
	var losses, ends atomic.Int32
	goOn, told := make(chan struct{}), make(chan struct{})
	m := testserver.Connect(t, testserver.Server(t).Addr(0), session.WithTrace(session.Trace{
		Hold: func(ctx context.Context, _ session.HoldInfo) func(error) {
			l, _ := LeaseFrom(ctx)
			ended := make(chan struct{})
			l.over.after(func() { close(ended); <-goOn })
			go func() {
				defer close(told)
				l.t.loseNode()
			}()
			<-ended
			return func(error) { ends.Add(1) }
		},
		Loss: func(context.Context, session.HoldInfo, error) { losses.Add(1) },
	}))
	q, err := New(m, testserver.Path(t))
	expect.NoError(t, err)
	l, err := q.Acquire(expect.Patient(t), Request{Kind: Mutex()})
	expect.NoError(t, err)
	expect.Match(t, "the lease", l.Err(), session.ErrLost)
	close(goOn)
	expect.Receive(t, "the end of the other", told)
	expect.NoError(t, m.Close()) // it waits for the hooks
	if losses.Load() != 1 || ends.Load() != 1 {
		t.Errorf("told of %d losses and %d ends", losses.Load(), ends.Load())
	}
}
