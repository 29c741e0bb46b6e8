package place

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/session"
)

// Without hooks nothing is allocated for them.
func TestNoTraceAllocatesNothing(t *testing.T) {
	type key struct{}
	outer := context.WithValue(context.Background(), key{}, 1)
	hooks := new(session.Trace)
	watched := session.WatchInfo{Path: "/a/b"}
	v := &view{targets: make([]decide.Blocker, 1), watches: make([]*core.Watch, 1)}
	l := &Lease{ctx: holderContext(outer, hooks)}
	n := testing.AllocsPerRun(100, func() {
		ctx, end := traceAcquire(outer, hooks, session.AcquireInfo{Kind: "mutex", Path: "/a", Try: true})
		ctx, over := traceWatch(ctx, hooks, watched)
		traceRetry(ctx, hooks, opAcquire, 1, errDeleted)
		over(nil)
		var w wait
		w.follow(ctx, hooks, nil, v)
		w.told.end(nil)
		holder := holderContext(ctx, hooks)
		held := traceHold(l, hooks, session.HoldInfo{Kind: "mutex", Path: "/a", Node: "/a/b"})
		end(session.AcquireResult{})
		traceLoss(holder, hooks, session.HoldInfo{}, errDeleted)
		traceEnd(held, errDeleted)
		_, released := traceRelease(ctx, hooks, holder, session.HoldInfo{})
		released(nil)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
