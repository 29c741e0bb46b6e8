package semaphore_test

import (
	"context"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
)

// The two layouts at one path exclude each other. The call that comes second gets a conflict, and leaves nothing behind.
func TestTwoLayouts(t *testing.T) {
	ctx := patient(t)
	t.Run("Curator's second", func(t *testing.T) {
		dir := testserver.Path(t)
		directories(t, dir)
		l := take(t, newSem(t, connect(t), dir, 2), 1)
		s := curators(t, dir, 2)
		_, err := s.Acquire(ctx)
		wantErr(t, "Acquire", err, queue.ErrConflict)
		_, err = s.TryAcquire(ctx)
		wantErr(t, "TryAcquire", err, queue.ErrConflict)
		nodes(t, dir, 0, 0)
		must(t, l.Err())
		release(t, l)
		release(t, take(t, s, 1))
	})
	t.Run("Curator's first", func(t *testing.T) {
		dir := testserver.Path(t)
		directories(t, dir)
		l := take(t, curators(t, dir, 2), 1)
		s := newSem(t, connect(t), dir, 2)
		_, err := s.Acquire(ctx)
		wantErr(t, "Acquire", err, queue.ErrConflict)
		_, err = s.TryAcquire(ctx)
		wantErr(t, "TryAcquire", err, queue.ErrConflict)
		testserver.WaitChildren(t, dir, 2)
		must(t, l.Err())
		release(t, l)
		release(t, take(t, s, 1)) // the directories alone are no conflict
	})
}

// A hook that panics while the gate is held, or while it is left, costs neither the lease nor the gate.
func TestHookPanicsAtTheGate(t *testing.T) {
	for _, c := range []struct {
		name  string
		trace func(strike func()) session.Trace
	}{
		{"on the way in", func(strike func()) session.Trace {
			return session.Trace{Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
				if a.Kind == "semaphore" {
					strike()
				}
				return ctx, nil
			}}
		}},
		{"when the gate is left", func(strike func()) session.Trace {
			return session.Trace{Release: func(ctx, _ context.Context, h session.HoldInfo) (context.Context, func(error)) {
				if h.Kind == "gate" {
					strike()
				}
				return ctx, nil
			}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := testserver.Path(t)
			directories(t, dir)
			var once sync.Once
			m := connect(t, session.WithTrace(c.trace(func() { once.Do(func() { panic("a hook's") }) })))
			s := newSem(t, m, dir, 1, semaphore.WithCuratorLayout())
			l, err := s.Acquire(patient(t))
			must(t, err)
			once.Do(func() { t.Error("the hook was not called") })
			nodes(t, dir, 1, 0)
			release(t, l)
			nodes(t, dir, 0, 0)
		})
	}
}
