package place

import (
	"context"
	"path"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/core"
)

// watching calls the Watch hook during a wait, for one node after another: the one ahead that an error of the wait would
// name. The call for a node ends when the node is gone, although the wait goes on for others.
type watching struct {
	ctx  context.Context // of the present call
	on   *core.Watch     // on the node of the present call; nil if there is none
	done func(error)     // ends the present call
}

// begin begins a call for the node that an error would name.
func (w *watching) begin(ctx context.Context, t *hooks.Trace, q *Queue, v *view) {
	i, count := v.named()
	if i < 0 {
		return // the last target has gone just now, and the wait is about to end
	}
	w.ctx, w.done = traceWatch(ctx, t, hooks.WatchInfo{
		Chroot: q.m.Chroot(), Path: path.Join(q.dir, v.targets[i].Node.Name),
		Nodes: count, Ahead: v.unwatched() + count, Known: knownOf(v.watches[i]),
		Holds: func() bool { return v.holds(i) },
	})
	w.on = v.watches[i]
}

// end ends the present call, if there is one. w may be nil.
func (w *watching) end(err error) {
	if w != nil && w.on != nil {
		w.on = nil
		w.done(err)
	}
}

// within returns the context for requests during the present call: it ends with ctx, and has the values of the hook. It is
// ctx if there is no call. w may be nil.
func (w *watching) within(ctx context.Context) context.Context {
	if w == nil || w.on == nil {
		return ctx
	}
	return valuesOf{ctx, w.ctx}
}

// valuesOf is a context with the values of another. A wait can go on after the call in which it has begun.
type valuesOf struct {
	context.Context
	values context.Context
}

func (c valuesOf) Value(key any) any { return c.values.Value(key) }

func traceWatch(ctx context.Context, t *hooks.Trace, w hooks.WatchInfo) (context.Context, func(error)) {
	var end func(error)
	if t.Watch != nil {
		ctx, end = t.Watch(ctx, w)
	}
	if end == nil {
		end = endNothing
	}
	return ctx, end
}
