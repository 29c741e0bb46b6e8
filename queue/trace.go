package queue

import (
	"context"
	"slices"

	"github.com/turnstile-go/turnstile/internal/nodedata"
	"github.com/turnstile-go/turnstile/session"
)

// Hooks run in place, on the goroutine that has something to tell. Those for a loss run in order on a goroutine of the
// manager, since a look at a lease can be the first to find the loss.

// nodeData returns the data of a new node. A node that several acquisitions use after each other has neither label nor
// traceparent: the acquisition that creates it has ended by the first hand-over, so a label would not be the holder's, nor a
// link lead to it.
func (q *Queue) nodeData(ctx context.Context, r *Request) []byte {
	d, label, parent := nodedata.New(), labelOf(ctx), ""
	if hook := q.m.Trace().Traceparent; hook != nil {
		parent = hook(ctx)
	}
	if !r.Shared {
		d.Label, d.Traceparent = label, parent
	}
	return d.Encode()
}

// valuesFor returns a context that never ends, with the values of ctx for hooks. If there are no hooks that could look at
// them, it has none, so that they can be freed.
func (q *Queue) valuesFor(ctx context.Context) context.Context {
	t := q.m.Trace()
	if t.Hold == nil && t.Loss == nil && t.Release == nil && t.Request == nil && t.Retry == nil {
		return context.Background()
	}
	return context.WithoutCancel(ctx)
}

// watching calls the Watch hook during a wait, for one node after another: the one ahead that the error of the wait would
// name.
type watching struct {
	q      *Queue
	v      *view
	on     *session.Watch // on the node of the present call; nil if there is none
	within context.Context
	done   func(error)
}

// follow begins a call, unless the node of the present call stands. It returns the context for requests of the wait.
func (o *watching) follow(ctx context.Context) context.Context {
	hook := o.q.m.Trace().Watch
	if hook == nil {
		return ctx
	}
	if o.on != nil && o.on.Event() == session.WatchPending {
		return o.within
	}
	o.end(nil)
	i, _, count := o.v.named()
	if i < 0 {
		return ctx // the last has gone just now, and the wait is about to end
	}
	v, on := o.v, o.v.on[i]
	o.on = on
	o.within, o.done = hook(ctx, session.WatchInfo{
		Chroot: o.q.m.Chroot(), Path: o.q.nodePath(v.Watch[i].Node.Name), Nodes: count, Ahead: v.Beyond + count,
		Known: func() (session.NodeInfo, bool) {
			data, stat := on.Data()
			if stat == nil {
				return session.NodeInfo{}, false
			}
			who := nodedata.Of(data)
			return session.NodeInfo{
				Data: slices.Clone(data), // others go by the data too
				ID:   who.ID, Label: who.Label, Traceparent: who.Traceparent, Session: stat.EphemeralOwner,
			}, true
		},
		Holds: func() bool { return v.isFirst(i) },
	})
	return o.within
}

// end ends the present call, if there is one.
func (o *watching) end(err error) {
	if o.done != nil {
		o.done(err)
	}
	o.on, o.done = nil, nil
}
