package zklock_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// A hook that panics while a Multi takes its locks, or gives them up, leaves none of them held.
func TestMultiHookPanics(t *testing.T) {
	for what, strike := range map[string]func(*session.Trace, func()){
		"the second Hold": func(tr *session.Trace, strike func()) {
			tr.Hold = func(context.Context, session.HoldInfo) func(error) { strike(); return nil }
		},
		"the first Release": func(tr *session.Trace, strike func()) {
			tr.Release = func(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) {
				strike()
				return ctx, nil
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			var calls, at atomic.Int64
			at.Store(2)
			if what == "the first Release" {
				at.Store(1)
			}
			var hooks session.Trace
			strike(&hooks, func() {
				if calls.Add(1) == at.Load() {
					panic("a hook")
				}
			})
			paths := dirs(t, 3)
			m := connect(t, session.WithTrace(hooks))
			all := newMulti(t, newMutex(t, m, paths[0]), newMutex(t, m, paths[1]), newMutex(t, m, paths[2]))
			ctx := patient(t)
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the hook has not panicked")
					}
				}()
				l, err := all.Acquire(ctx)
				must(t, err)
				_ = l.Release(ctx)
			}()
			for _, dir := range paths {
				testserver.WaitChildren(t, dir, 0)
			}
		})
	}
}
