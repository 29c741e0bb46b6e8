package zklock_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// A hook that panics while a MultiLock takes its locks, or gives them up, changes nothing.
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
			l, err := all.Acquire(ctx)
			must(t, err)
			must(t, l.Err())
			must(t, l.Release(ctx))
			if calls.Load() != 3 {
				t.Errorf("%d calls of the hook, want one for each lock", calls.Load())
			}
			for _, dir := range paths {
				testserver.WaitChildren(t, dir, 0)
			}
		})
	}
}

// The hook for the traceparent is called before the nodes are made, and not again for a lock that has to wait.
func TestMultiTraceparentOnce(t *testing.T) {
	var calls atomic.Int64
	paths := dirs(t, 2)
	m := connect(t, session.WithTrace(session.Trace{Traceparent: func(context.Context) string {
		calls.Add(1)
		return ""
	}}))
	ctx := patient(t)
	holder := newMutex(t, connect(t), paths[1])
	must(t, holder.Lock(ctx))
	shared := zklock.WithLocalHandover(1)
	all := newMulti(t, newMutex(t, m, paths[0], shared), newMutex(t, m, paths[1], shared))
	if ok, err := all.TryLock(ctx); ok || err != nil || calls.Load() > 2 {
		t.Errorf("TryLock: %v, %v, and %d calls of the hook", ok, err, calls.Load())
	}
	must(t, holder.Unlock())
	for _, dir := range paths {
		testserver.WaitChildren(t, dir, 0)
	}
}
