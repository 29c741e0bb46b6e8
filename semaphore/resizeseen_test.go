package semaphore_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// A call that begins after a Resize has returned uses its limit, whatever a concurrent call has read before.
func TestResizeIsNotForgotten(t *testing.T) {
	dir := testserver.Path(t)
	persistent(t, dir, `{"maxLeases":2}`)
	read, goOn := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	m := connect(t, session.WithTrace(session.Trace{
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if r.Op != "getData" || r.Path != dir {
				return ctx, nil
			}
			return ctx, func(error) {
				if first.CompareAndSwap(false, true) {
					close(read)
					<-goOn
				}
			}
		},
	}))
	s := newSem(t, m, dir, 2)
	got := make(chan error, 1)
	go func() {
		_, err := s.TryAcquire(patient(t))
		got <- err
	}()
	receive(t, "the limit", read)
	must(t, s.Resize(patient(t), 5))
	close(goOn)
	must(t, receive(t, "TryAcquire", got))
	_, err := s.TryAcquireN(patient(t), 4)
	must(t, err)
}
