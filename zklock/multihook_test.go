package zklock_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// A hook that panics while a MultiLock takes its locks or gives them up leaves none of them held.
func TestMultiHookPanics(t *testing.T) {
	var calls atomic.Int64
	strike := func(at int64) {
		if calls.Add(1) == at {
			panic("a hook")
		}
	}
	for what, hooks := range map[string]session.Trace{
		"the second Hold": {Hold: func(context.Context, session.HoldInfo) func(error) {
			strike(2)
			return nil
		}},
		"the first Release": {Release: func(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) {
			strike(1)
			return ctx, nil
		}},
	} {
		t.Run(what, func(t *testing.T) {
			calls.Store(0)
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
