package queue

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/session"
)

// An unfair lock is the simple one of the textbooks: one node, which whoever makes it holds.
// That all have the same name is the danger in it. What a name made of a uuid tells at once,
// whose node it is and whether a delete that is repeated can hit another's, is told here by
// the session that owns the node, and by the session's claim: see plumbing.Claim.

// unfairName is the name of the one node. It has a number, so that locks of other kinds know
// it for a contender.
func unfairName(kind *Kind) string { return kind.Prefixes[0] + "0000000000" }

// barge is the loop of an unfair kind, in the place of run: make the node, or wait for the
// end of the one that is there, and try again.
func (a *attempt) barge(ctx context.Context) (err error) {
	if err := a.stake(ctx); err != nil {
		return err
	}
	defer func() { a.leaveUnlessGranted(ctx, err) }()
	for err == nil {
		var holder plumbing.Watch
		if holder, err = a.seize(ctx); err != nil {
			break
		}
		if holder == nil {
			return a.grant()
		}
		if a.entry.try {
			return ErrBusy
		}
		_, stat, _ := holder.Result()
		if err = a.slow(ctx, stat.Czxid > a.rival); err != nil {
			break
		}
		a.rival = max(a.rival, stat.Czxid)
		err = a.awaitEnd(ctx, holder)
	}
	return err
}

// stake claims the node for this attempt among all in the session: who stands behind another
// in this process has nothing to ask the servers.
func (a *attempt) stake(ctx context.Context) (err error) {
	node := path.Join(a.q.dir, unfairName(a.r.Kind))
	if !a.entry.try {
		a.claim, err = plumbing.Of(a.s).Claim(ctx, node)
		return err
	}
	var ok bool
	if a.claim, ok = plumbing.Of(a.s).TryClaim(node); !ok {
		return ErrBusy
	}
	return nil
}

func (a *attempt) unclaim() {
	if a.claim != nil {
		a.claim.End()
	}
}

// seize tries to make the node. If it has, it returns nil; or else the watch on the node that
// is in the way, which may have ended. The create, the watch, on whichever node that is, and
// the listing are sent together.
//
// A create whose reply was lost is settled by the next one: either that makes the node, or
// the one that is in its way is ours, by its owner.
func (a *attempt) seize(ctx context.Context) (holder plumbing.Watch, err error) {
	for tries := 1; ; tries++ {
		creation, err := plumbing.Of(a.s).StartCreate(ctx, a.claim.Path(), a.r.Data, zk.FlagEphemeral)
		if err != nil {
			return nil, err
		}
		a.creation = creation
		w, err := plumbing.Of(a.s).StartWatch(ctx, a.claim.Path())
		if err != nil {
			return nil, err
		}
		l := a.listDir(ctx)
		err = a.created(ctx)
		made := err == nil
		switch {
		case made, errors.Is(err, zk.ErrNodeExists):
		case errors.Is(err, zk.ErrNoNode):
			if err := plumbing.Of(a.s).MakeParents(ctx, a.q.dir); err != nil {
				return nil, err
			}
			if err := a.slow(ctx, false); err != nil {
				return nil, err
			}
			continue
		case errors.Is(err, zk.ErrConnectionClosed):
			a.doubt = true
			traceRetry(ctx, a.q.hooks(), "create", tries, err)
			if err := a.slow(ctx, false); err != nil {
				return nil, err
			}
			continue
		default:
			return nil, err
		}
		ours, err := a.identify(ctx, w)
		switch {
		case made || ours:
			return nil, a.take(ctx, made, l)
		case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrConnectionClosed):
			// It has gone, or it is not known whose it is.
			if err := a.slow(ctx, false); err != nil {
				return nil, err
			}
			continue
		case err != nil:
			return nil, err
		}
		if a.position < 0 {
			a.position = 1 // of how many more wait it cannot know
		}
		return w, a.conflict(l)
	}
}

// created waits for the answer to the create.
func (a *attempt) created(ctx context.Context) error {
	if err := a.until(ctx, a.creation.Done()); err != nil {
		return err
	}
	_, err := a.creation.Result()
	return err
}

// identify reports whether a watch is on a node of ours, and keeps it if so. The get that set
// it can have been faster than the create: what it does not tell proves nothing.
func (a *attempt) identify(ctx context.Context, w plumbing.Watch) (ours bool, err error) {
	_, stat, err := a.settle(ctx, w)
	if err != nil || !a.claim.Owns(stat) {
		return false, err
	}
	a.own, a.czxid = w, stat.Czxid
	return true, nil
}

// take makes the node this attempt's, unless somebody stands beside it. Another's node has the
// same name, so that a listing alone proves nothing: it counts if it is not older than our
// node, and if the watch on that has not ended when it is there. Events of one connection
// arrive in order with its answers.
func (a *attempt) take(ctx context.Context, made bool, l listing) error {
	if err := a.found(path.Base(a.claim.Path())); err != nil {
		return err
	}
	if !made {
		plumbing.Of(a.s).Adopt(a.claim.Path())
	}
	a.position = max(0, a.position)
	for {
		readable, err := a.prove(ctx)
		if err != nil {
			return err
		}
		if !readable || l.err != nil || l.pzxid < a.czxid {
			l = a.listDir(ctx)
		}
		switch {
		case errors.Is(l.err, zk.ErrNoNode):
			return errDeleted
		case l.err != nil:
			return l.err
		}
		if err := a.conflict(l); err != nil || !readable || a.standing() != nil {
			return err
		}
		// The node may be gone, or the connection: look again.
		if err := a.slow(ctx, false); err != nil {
			return err
		}
	}
}

// prove sees to it that there is a watch on our node that has not ended. It returns errDeleted
// if there is no node, or another's; and false if the server does not let us read it.
func (a *attempt) prove(ctx context.Context) (bool, error) {
	for first := true; a.standing() == nil; first = false {
		if !first {
			if err := a.slow(ctx, false); err != nil {
				return false, err
			}
		}
		w, err := plumbing.Of(a.s).StartWatch(ctx, a.claim.Path())
		if err != nil {
			return false, err
		}
		ours, err := a.identify(ctx, w)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return false, errDeleted
		case err == nil && !ours:
			// Another's node has come in its place; or it stood there before, and the news
			// of its end was lost. Nobody is to share that watch.
			plumbing.Of(a.s).Forget(a.claim.Path(), w)
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

// conflict looks for contenders of other kinds. Those make their nodes before they list, as
// we do, so that at least one of two sees the other.
func (a *attempt) conflict(l listing) error {
	_, err := ofKind(parseNodes(l.names, a.r.Kind.Prefixes...), a.r.Kind)
	return err
}

// awaitEnd waits for the end of the node that is in the way, or until it is time to try again
// for another reason. No wake-up is lost as far as we know; should one be all the same, it
// costs a session timeout.
func (a *attempt) awaitEnd(ctx context.Context, holder plumbing.Watch) (err error) {
	if holder.Event() != plumbing.WatchPending {
		return nil // it has ended already: there is nobody to wait for
	}
	data, _, _ := holder.Result()
	ctx, end := traceWatch(ctx, a.q.hooks(), session.WatchInfo{
		Chroot: plumbing.OfManager(a.q.m).Chroot(), Path: a.claim.Path(), Data: data, Nodes: 1,
	})
	defer func() { end(err) }()
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

// recheck asks whether the node that is watched is still the one that the watch was set on.
func (a *attempt) recheck(ctx context.Context, holder plumbing.Watch) error {
	stat, err := a.s.Exists(ctx, a.claim.Path())
	if err != nil {
		return err
	}
	if _, seen, _ := holder.Result(); stat == nil || seen == nil || stat.Czxid != seen.Czxid {
		plumbing.Of(a.s).Forget(a.claim.Path(), holder)
	}
	return nil
}

// standing returns the stat of our node if it is there for certain, as far as this connection
// has told: its watch has not ended.
func (a *attempt) standing() *zk.Stat {
	if a.own == nil || a.own.Event() != plumbing.WatchPending {
		return nil
	}
	_, stat, _ := a.own.Result()
	return stat
}
