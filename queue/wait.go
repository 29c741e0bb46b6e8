package queue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/nodedata"
	"github.com/turnstile-go/turnstile/session"
)

// watch sets watches on our own node and on those of v, and returns when all are answered. The request for our own
// node leaves first: see [Look]. A watch of the last wait stays in use if it is pending, or has told that a node is
// gone which the listing still shows.
func (c *contender) watch(ctx context.Context, v *Verdict) error {
	// Each listing should show fewer ahead. If a server says otherwise, the pace keeps the contender from spinning.
	if ahead := v.Count(); ahead < c.least {
		c.least = ahead
		c.pace.Reset()
	} else if err := cmp.Or(c.pace.Wait(ctx, c.s.Done()), c.s.Err()); err != nil {
		return err
	}
	last := c.view
	paths, on := []string{c.node.Path}, []int{-1}
	watches := make([]*session.Watch, len(v.Watch))
	for i, b := range v.Watch {
		if last != nil {
			same := func(old Blocker) bool { return old.Node.Name == b.Node.Name }
			if j := slices.IndexFunc(last.Watch, same); j >= 0 && (last.stands(j) || last.on[j].Event() == session.WatchDeleted) {
				watches[i] = last.on[j]
			}
		}
		if watches[i] == nil {
			paths, on = append(paths, c.q.nodePath(b.Node.Name)), append(on, i)
		}
	}
	last.forgetBut(watches)
	c.show(v, slices.Clone(watches)) // leave forgets them if the others fail
	all, err := c.s.WatchNodes(ctx, paths...)
	if err != nil {
		return err
	}
	c.own = all[0]
	for j, i := range on[1:] {
		watches[i] = all[j+1]
	}
	c.show(v, watches)
	c.warnOfOrphans()
	return nil
}

// wait returns free if the contender may go. Otherwise only a listing tells. The end of a try's patience is ErrBusy.
func (c *contender) wait(ctx context.Context, patience <-chan time.Time) (free bool, err error) {
	wake := make(chan struct{}, 1)
	stir := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	for _, w := range append(slices.Clone(c.view.on), c.own, c.limit) {
		if w != nil {
			defer w.AfterEvent(stir)()
		}
	}
	began, tick := time.Now(), time.NewTimer(c.s.Timeout())
	told := watching{q: c.q, v: c.view}
	defer func() {
		tick.Stop()
		c.pace.Rested(time.Since(began))
		told.end(err)
	}()
	for {
		switch next := c.look(); next {
		case Wait:
		case Gone:
			return false, cmp.Or(c.s.Err(), errDeleted)
		default:
			return next == Free, c.s.Err() // the session's end breaks the watches
		}
		within := told.follow(ctx)
		select {
		case <-wake:
		case <-tick.C: // a lost wake-up costs a session timeout
			if there, err := c.allThere(within); err != nil || !there {
				return false, err
			}
			tick.Reset(c.s.Timeout())
		case <-patience:
			return false, ErrBusy
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// look reads the watch on our own node last.
func (c *contender) look() Next {
	seen := make([]session.WatchEvent, len(c.view.on))
	for i, one := range c.view.on {
		seen[i] = one.Event()
	}
	if c.limit != nil && c.limit.Event() != session.WatchPending && c.own.Event() != session.WatchDeleted {
		return List // the configuration has changed
	}
	return Look(&c.view.Verdict, c.policy.Slack, seen, c.own.Event())
}

// fewAhead is how many nodes are asked for by name: more cost more than a listing.
const fewAhead = 8

// allThere asks for a few nodes by name: so waiters do not list a long queue all the time.
func (c *contender) allThere(ctx context.Context) (bool, error) {
	if len(c.view.Watch) > fewAhead || c.limit != nil {
		return false, nil
	}
	for _, b := range append([]Blocker{{Node: c.me}}, c.view.Watch...) {
		stat, err := c.s.Exists(ctx, c.q.nodePath(b.Node.Name))
		if err != nil || stat == nil {
			return false, err
		}
	}
	return true, nil
}

// warnOfOrphans logs each node ahead that no session owns, once.
func (c *contender) warnOfOrphans() {
	for i, b := range c.view.Watch {
		_, stat := c.view.on[i].Data()
		if stat == nil || stat.EphemeralOwner != 0 {
			continue
		}
		node := c.q.nodePath(b.Node.Name)
		if before, _ := c.q.warned.Swap(node, stat.Czxid); before != stat.Czxid {
			c.q.m.Logger().Warn("a lock waits for a node that is not ephemeral and stays until it is deleted; "+
				"delete it if nobody uses it", "lock", c.q.dir, "node", node)
		}
	}
}

// watching calls the Watch hook for one node after another: that which the error of the wait would name.
type watching struct {
	q      *Queue
	v      *view
	on     *session.Watch
	within context.Context
	done   func(error)
}

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
		return ctx
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
				Data: slices.Clone(data), // others read it
				ID:   who.ID, Label: who.Label, Traceparent: who.Traceparent, Session: stat.EphemeralOwner,
			}, true
		},
		Holds: func() bool { return v.isFirst(i) },
	})
	o.within = cmp.Or(o.within, ctx)
	return o.within
}

func (o *watching) end(err error) {
	if o.done != nil {
		o.done(err)
	}
	o.on, o.done = nil, nil
}
