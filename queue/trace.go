package queue

import (
	"context"

	"github.com/turnstile-go/turnstile/session"
)

// These call the hooks that there are, and return what to call at the end. Where there is
// none they allocate nothing.

func endNothing(error) {}

func traceAcquire(ctx context.Context, t *session.Trace, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
	var end func(session.AcquireResult)
	if t.Acquire != nil {
		ctx, end = t.Acquire(ctx, a)
	}
	if end == nil {
		end = func(session.AcquireResult) {}
	}
	return ctx, end
}

func traceWatch(ctx context.Context, t *session.Trace, path string, data []byte) (context.Context, func(error)) {
	var end func(error)
	if t.Watch != nil {
		ctx, end = t.Watch(ctx, session.WatchInfo{Path: path, Data: data})
	}
	if end == nil {
		end = endNothing
	}
	return ctx, end
}

func traceRelease(ctx context.Context, t *session.Trace, holder context.Context, h session.HoldInfo) (context.Context, func(error)) {
	var end func(error)
	if t.Release != nil {
		ctx, end = t.Release(ctx, holder, h)
	}
	if end == nil {
		end = endNothing
	}
	return ctx, end
}

func traceHold(holder context.Context, t *session.Trace, h session.HoldInfo) func(error) {
	if t.Hold != nil {
		if end := t.Hold(holder, h); end != nil {
			return end
		}
	}
	return endNothing
}

func traceLoss(holder context.Context, t *session.Trace, h session.HoldInfo, cause error) {
	if t.Loss != nil {
		t.Loss(holder, h, cause)
	}
}

func traceRetry(ctx context.Context, t *session.Trace, op string, try int, cause error) {
	if t.Retry != nil {
		t.Retry(ctx, session.RetryInfo{Op: op, Try: try, Cause: cause})
	}
}

// holderContext returns the values of an acquisition's context, which outlive it as long as
// the hold does, where there are hooks to look at them.
func holderContext(ctx context.Context, t *session.Trace) context.Context {
	if t.Hold == nil && t.Loss == nil && t.Release == nil && t.Request == nil && t.Retry == nil {
		return context.Background()
	}
	return context.WithoutCancel(ctx)
}
