package queue

import (
	"context"
	"path"

	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/session"
)

// These call the hooks that there are, and return what to call at the end. Where there is
// none they allocate nothing.

// hooks returns the hooks of the manager.
func (q *Queue) hooks() *session.Trace { return plumbing.TraceHooks[session.Trace](q.m) }

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

func traceWatch(ctx context.Context, t *session.Trace, w session.WatchInfo) (context.Context, func(error)) {
	var end func(error)
	if t.Watch != nil {
		ctx, end = t.Watch(ctx, w)
	}
	if end == nil {
		end = endNothing
	}
	return ctx, end
}

// watching tells the Watch hook of a wait, in parts. Each part names the nearest node ahead
// that stands, and ends when that node has gone, although the wait goes on for those before it.
type watching struct {
	ctx    context.Context // of the present part; that of the wait, outside of any
	nearer plumbing.Watch  // on the node of the present part; nil: there is no part
	done   func(error)     // ends the present part
}

// follow begins a part, unless the node of the present part stands.
func (w *watching) follow(ctx context.Context, t *session.Trace, q *Queue, targets []blocker, watches []plumbing.Watch) {
	if t.Watch == nil || stands(w.nearer) {
		return
	}
	nearest, count := -1, 0
	for i, one := range watches {
		if stands(one) {
			nearest = i
			count++
		}
	}
	w.end(nil)
	if nearest < 0 {
		return // the last of them has gone just now, and the wait is about to end
	}
	w.nearer = watches[nearest]
	data, _, _ := w.nearer.Result()
	w.ctx, w.done = traceWatch(ctx, t, session.WatchInfo{
		Chroot: plumbing.OfManager(q.m).Chroot(), Path: path.Join(q.dir, targets[nearest].node.Name), Data: data, Nodes: count,
	})
}

// end ends the present part, if there is one.
func (w *watching) end(err error) {
	if w.nearer != nil {
		w.done(err)
		w.nearer = nil
	}
}

// stands reports whether a watched node is still there, as far as is known.
func stands(w plumbing.Watch) bool { return w != nil && w.Event() == plumbing.WatchPending }

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

// traceparent returns what the data of a new node says of the trace that it belongs to. The
// acquisition that makes a node to be handed on has ended by the first hand-over, and a link to
// it would name a goroutine that nobody waits for.
func traceparent(ctx context.Context, t *session.Trace, handedOn bool) string {
	if t.Traceparent == nil {
		return ""
	}
	parent := t.Traceparent(ctx)
	if handedOn {
		return ""
	}
	return parent
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
