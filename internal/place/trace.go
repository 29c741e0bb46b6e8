package place

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/label"
	"github.com/turnstile-go/turnstile/internal/nodedata"
)

// Each of these functions calls a hook, and returns the function to call at the end. If there is
// no such hook, it allocates nothing.

func endNothing(error) {}

func traceAcquire(ctx context.Context, t *hooks.Trace, a hooks.AcquireInfo) (context.Context, func(hooks.AcquireResult)) {
	var end func(hooks.AcquireResult)
	if t.Acquire != nil {
		a.Label = label.From(ctx)
		ctx, end = t.Acquire(ctx, a)
	}
	if end == nil {
		end = func(hooks.AcquireResult) {}
	}
	return ctx, end
}

// knownOf returns hooks.WatchInfo.Known for a watch.
func knownOf(w *core.Watch) func() (hooks.NodeInfo, bool) {
	return func() (hooks.NodeInfo, bool) {
		data, stat := known(w)
		if stat == nil {
			return hooks.NodeInfo{}, false
		}
		who := nodedata.Of(data)
		return hooks.NodeInfo{
			Data: slices.Clone(data), // the wait goes by the data, and so do others
			ID:   who.ID, Label: who.Label, Traceparent: who.Traceparent, Session: stat.EphemeralOwner,
		}, true
	}
}

// known returns what is known of a watched node: nothing if nobody has asked, or if the server has not answered or
// has refused. w may be nil.
func known(w *core.Watch) ([]byte, *zk.Stat) {
	if w == nil || !w.Answered() {
		return nil, nil
	}
	data, stat, _ := w.Result()
	return data, stat
}

// stands reports whether a watched node is still there, as far as its watch says.
func stands(w *core.Watch) bool { return w != nil && w.Event() == core.WatchPending }

func traceRelease(ctx context.Context, t *hooks.Trace, holder context.Context, h hooks.HoldInfo) (context.Context, func(error)) {
	var end func(error)
	if t.Release != nil {
		ctx, end = t.Release(ctx, holder, h)
	}
	if end == nil {
		end = endNothing
	}
	return ctx, end
}

// traceEnd calls what the Hold hook has returned.
func traceEnd(end func(error), cause error) {
	if end != nil {
		end(cause)
	}
}

// describe returns what the data of a new node says of the acquisition. The node of a Local has
// neither label nor traceparent: the acquisition that creates the node has ended by the first hand-over, so a label
// would not be the holder's, nor a link lead to it.
func (r *Request) describe(ctx context.Context, t *hooks.Trace) nodedata.Data {
	d := nodedata.New()
	own := label.From(ctx)
	var parent string
	if t.Traceparent != nil {
		parent = t.Traceparent(ctx)
	}
	if r.handedOn {
		return d
	}
	d.Label, d.Traceparent = own, parent
	return d
}

// opAcquire is the Op of a RetryInfo when an acquisition is tried again: it has lost its session or its node, and joins
// the queue with a new node.
const opAcquire = "acquire"

func traceRetry(ctx context.Context, t *hooks.Trace, op string, try int, cause error) {
	if t.Retry != nil {
		t.Retry(ctx, hooks.RetryInfo{Op: op, Try: try, Cause: cause})
	}
}

// holderContext returns a context that never ends, with the values of an acquisition's context for
// hooks. If there are no hooks that could look at them, it has none, so that they can be freed.
func holderContext(ctx context.Context, t *hooks.Trace) context.Context {
	if t.Hold == nil && t.Loss == nil && t.Release == nil && t.Request == nil && t.Retry == nil {
		return context.Background()
	}
	return context.WithoutCancel(ctx)
}
