package place

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/kinds"
)

// An unfair lock is the simple one of the textbooks: there is one node, and the contender that
// creates it holds the lock.
//
// The danger is that all contenders use the same name. The name of a fair contender's node has
// its id, which tells two things: whose node it is, and that a repeated delete cannot hit the
// node of another. Here the node's owner (its session) tells the first, and the session's
// claim to the node ensures the second: see *core.Claim.

// unfairName returns the name of the one node. It has a sequence number, so that locks of other
// kinds take it for a contender.
func unfairName(kind *kinds.Kind) string { return kind.Prefixes[0] + "0000000000" }

// barge is the loop of an unfair kind: create the node, or wait for the end of the node that is
// there, and try again.
func (a *attempt) barge(ctx context.Context) (err error) {
	if err := a.stake(ctx); err != nil {
		return err
	}
	defer func() { a.leaveUnlessGranted(ctx, err) }()
	room, end, err := a.reserveUnfair(ctx) // until the end, as a waiter of a fair lock has room for its node
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			a.leaving()
		}
		end()
	}()
	for err == nil {
		var holder *core.Watch
		if holder, err = a.seize(ctx, room); err != nil {
			break
		}
		if holder == nil {
			return a.grant()
		}
		if a.entry.try {
			return ErrBusy
		}
		_, stat, _ := holder.Result()
		a.warnOfOrphan(path.Base(a.claim.Path()), stat)
		a.show(&view{
			targets: []blocker{{node: kinds.Node{Prefix: a.r.Kind.Prefixes[0]}}}, watches: []*core.Watch{holder},
			head: 1, session: a.s.ID(), unfair: true,
		})
		if err = a.slow(ctx, stat.Czxid > a.rival); err != nil {
			break
		}
		a.rival = max(a.rival, stat.Czxid)
		began := time.Now()
		err = a.awaitEnd(ctx, holder)
		a.pace.Rested(time.Since(began))
	}
	return err
}

// stake gets this attempt the session's claim to the node. Contenders of one session take turns
// at that, and only the one with the claim sends requests.
func (a *attempt) stake(ctx context.Context) (err error) {
	node := path.Join(a.q.dir, unfairName(a.r.Kind))
	if !a.entry.try {
		a.claim, err = a.s.Claim(ctx, node)
		return err
	}
	var ok bool
	if a.claim, ok = a.s.TryClaim(node); !ok {
		return ErrBusy
	}
	return nil
}

func (a *attempt) unclaim() {
	if a.claim != nil {
		a.claim.End()
	}
}

// seize tries to create the node. It returns nil if it has. Otherwise it returns the watch on the
// node that is in the way, which may have ended.
//
// If the reply to a create was lost, the next create settles it: it creates the node, or finds one
// in its way whose owner tells whether it is ours.
func (a *attempt) seize(ctx context.Context, room *core.Reservation) (holder *core.Watch, err error) {
	for tries := 1; ; tries++ {
		w, l, err := a.sendUnfair(ctx, room)
		if err != nil {
			return nil, err
		}
		err = a.settleCreate(ctx)
		switch {
		case err == nil, errors.Is(err, zk.ErrNodeExists):
			made := err == nil
			ours, err := a.identify(ctx, w)
			switch {
			case made || ours:
				return nil, a.take(ctx, room, made, l)
			case err == nil:
				if a.position < 0 {
					a.position = 1 // the number of other waiters is not known
				}
				return w, a.conflict(l)
			case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrConnectionClosed):
				// The node has gone, or its owner is not known.
			default:
				return nil, err
			}
		case errors.Is(err, zk.ErrNoNode):
			if err := a.s.MakeParents(ctx, a.q.dir); err != nil {
				return nil, err
			}
		case errors.Is(err, zk.ErrConnectionClosed):
			a.doubt, a.lost = true, a.creation
			if errors.Is(err, core.ErrTooLong) {
				return nil, err // the next try would break the connection again
			}
			traceRetry(ctx, a.q.hooks(), "create", tries, err)
		default:
			return nil, err
		}
		if err := a.slow(ctx, false); err != nil {
			return nil, err
		}
	}
}

// sendUnfair sends three requests together: the create, a watch on the node (ours or another's),
// and a listing. It waits for the answer to the listing only.
func (a *attempt) sendUnfair(ctx context.Context, room *core.Reservation) (*core.Watch, listing, error) {
	if a.lost != nil {
		a.lost.Resolve("") // the node has its room by this create, whichever makes it
		defer func() {
			if a.lost != nil { // this create was not sent, and the earlier one may have made the node
				a.s.Adopt(room, a.claim.Path())
			}
		}()
	}
	creation, err := a.s.StartCreate(ctx, room, a.claim.Path(), a.r.Data, core.Ephemeral)
	if err != nil {
		return nil, listing{}, err
	}
	a.creation, a.lost = creation, nil
	w, err := a.s.StartWatch(ctx, a.claim.Path())
	if err != nil {
		return nil, listing{}, err
	}
	return w, a.listDir(ctx), nil
}

// settleCreate waits for the answer to the create.
func (a *attempt) settleCreate(ctx context.Context) error {
	if err := a.until(ctx, a.creation.Done()); err != nil {
		return err
	}
	_, err := a.creation.Result()
	return err
}

// identify reports whether a watch is on our node, and if so, takes note of it. The request for
// the watch may have overtaken the create: false proves nothing.
func (a *attempt) identify(ctx context.Context, w *core.Watch) (ours bool, err error) {
	_, stat, err := a.settle(ctx, w)
	if err != nil || !a.claim.Owns(stat) {
		return false, err
	}
	a.own, a.czxid = w, stat.Czxid
	return true, nil
}

// take makes sure that no contender of another kind stands beside our node. made is false if the
// node is ours although its create seemed to fail. l is a listing that take uses if it can.
//
// A listing shows only a name, and another session's node has the same name as ours. So it takes
// two facts to show that our node stood when the directory was listed: the listing is not
// older than the node, and the watch on the node has not ended when the listing has come. Events
// of one connection arrive in order with its answers.
func (a *attempt) take(ctx context.Context, room *core.Reservation, made bool, l listing) error {
	if err := a.found(a.claim.Path()); err != nil {
		return err
	}
	if !made {
		a.s.Adopt(room, a.claim.Path())
	}
	a.position = max(0, a.position)
	for {
		readable, err := a.prove(ctx)
		if err != nil {
			return err
		}
		if !readable {
			return a.conflictBeside(a.listDir(ctx)) // no watch can prove more
		}
		if l.err != nil || l.pzxid < a.czxid {
			l = a.listDir(ctx)
		}
		if err := a.conflictBeside(l); err != nil {
			return err
		}
		if a.standing() != nil {
			return nil
		}
		// The node may be gone, or the connection.
		if err := a.slow(ctx, false); err != nil {
			return err
		}
	}
}

// prove sets a watch on our node, unless there is one that has not ended. It returns errDeleted if
// there is no node, or one of another session, and false if the server does not let us read it.
func (a *attempt) prove(ctx context.Context) (readable bool, err error) {
	for first := true; a.standing() == nil; first = false {
		if !first {
			if err := a.slow(ctx, false); err != nil {
				return false, err
			}
		}
		w, err := a.s.StartWatch(ctx, a.claim.Path())
		if err != nil {
			return false, err
		}
		ours, err := a.identify(ctx, w)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return false, errDeleted
		case err == nil && !ours:
			// Another session's node is there. Either it came in place of ours, or it was there
			// before and the event of its end was lost. The watch must not be shared.
			a.s.Forget(a.claim.Path(), w)
			return false, errDeleted
		case errors.Is(err, zk.ErrNoAuth):
			return false, nil
		case err != nil && !errors.Is(err, zk.ErrConnectionClosed):
			return false, err
		}
	}
	return true, nil
}

// listing is what was in the directory, and when that last changed.
type listing struct {
	names []string
	pzxid int64
	err   error
}

func (a *attempt) listDir(ctx context.Context) listing {
	names, stat, err := a.s.Children(ctx, a.q.dir)
	if err != nil {
		return listing{err: err}
	}
	return listing{names: names, pzxid: stat.Pzxid}
}

// conflictBeside looks for contenders of other kinds beside our node. Without a directory the node
// is gone too.
func (a *attempt) conflictBeside(l listing) error {
	switch {
	case errors.Is(l.err, zk.ErrNoNode):
		return errDeleted
	case l.err != nil:
		return l.err
	}
	return a.conflict(l)
}

// conflict looks for contenders of other kinds in a listing. They create their nodes before they
// list, as we do, so at least one of two contenders sees the other.
func (a *attempt) conflict(l listing) error {
	_, err := ofKind(parseNodes(l.names, a.r.Kind.Prefixes...), a.r.Kind)
	return err
}

// awaitEnd waits for the end of the node that is in the way, or until there is another reason to
// try again. No wake-up is lost as far as we know. If one is lost all the same, it costs a session
// timeout.
func (a *attempt) awaitEnd(ctx context.Context, holder *core.Watch) (err error) {
	if holder.Event() != core.WatchPending {
		return nil
	}
	if t := a.q.hooks(); t.Watch != nil {
		var end func(error)
		ctx, end = traceWatch(ctx, t, hooks.WatchInfo{
			Chroot: a.q.m.Chroot(), Path: a.claim.Path(), Nodes: 1, Ahead: 1, Known: knownOf(holder),
		})
		defer func() { end(err) }()
	}
	defer holder.Notify(a.wake)()
	recheck := time.NewTimer(a.s.Timeout())
	defer recheck.Stop()
	select {
	case <-a.wake:
	case <-recheck.C:
		return a.recheck(ctx, holder)
	case <-ctx.Done():
		return ctx.Err()
	case <-a.s.Done():
		return a.s.Err()
	}
	return nil
}

// recheck asks whether the watched node is still the one that the watch was set on. If not, the
// watch must not be shared any more.
func (a *attempt) recheck(ctx context.Context, holder *core.Watch) error {
	stat, err := a.s.Exists(ctx, a.claim.Path())
	if err != nil {
		return err
	}
	if _, seen, _ := holder.Result(); stat == nil || seen == nil || stat.Czxid != seen.Czxid {
		a.s.Forget(a.claim.Path(), holder)
	}
	return nil
}

// standing returns the stat of our node if the node stands for certain, as far as this
// connection has told: the watch on it has not ended.
func (n *ownNode) standing() *zk.Stat {
	if n.own == nil || n.own.Event() != core.WatchPending {
		return nil
	}
	_, stat, _ := n.own.Result()
	return stat
}
