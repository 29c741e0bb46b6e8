package queue

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/turnstile-go/turnstile/internal/plumbing"
)

// wait watches our own node and the nodes ahead that the rule names. It returns true when the
// attempt may go, and false when the directory has to be listed again.
func (a *attempt) wait(ctx context.Context, ahead *tail) (bool, error) {
	a.waited, a.children = true, nil    // the node ahead uses the watch up when it leaves
	targets := slices.Clone(ahead.last) // the clone lets the rest of the slice be freed during the wait
	watches, err := a.watch(ctx, targets)
	switch {
	case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, errReconfigured):
		return false, nil // if the connection was lost, the listing waits for the next one
	case err != nil:
		return false, err
	}
	a.show(a.viewOf(targets, watches, ahead.beyond))
	told := watching{ctx: ctx, beyond: ahead.beyond}
	granted, err := a.await(ctx, &told, ahead.rest, targets, watches)
	told.end(err)
	return granted, err
}

// await waits until the watches tell that the attempt may go (true), or that it has to list again
// (false).
func (a *attempt) await(ctx context.Context, told *watching, rest int, targets []blocker, watches []plumbing.Watch) (bool, error) {
	defer a.own.Notify(a.wake)()
	if a.configW != nil {
		defer a.configW.Notify(a.wake)()
	}
	for _, w := range watches {
		if w != nil {
			defer w.Notify(a.wake)()
		}
	}
	recheck := time.NewTicker(a.s.Timeout())
	defer recheck.Stop()
	for {
		switch look(rest, targets, watches, a.own, a.configW, a.slack) {
		case turnCame:
			return true, nil
		case lookAgain:
			return false, nil
		case placeLost:
			return false, errDeleted
		case nothingYet:
			told.follow(ctx, a.q.hooks(), a.q, targets, watches)
		}
		select {
		case <-a.wake:
		case <-recheck.C:
			if there, err := a.allThere(told.ctx, targets); !there || err != nil {
				return false, err
			}
		case <-ctx.Done():
			return false, ctx.Err()
		case <-a.s.Done():
			return false, a.s.Err()
		}
	}
}

// fewTargets is how many nodes are asked for by name at most. To ask for more costs more than a
// listing.
const fewTargets = 8

// allThere reports whether all nodes that are watched are still there. It returns false if there
// are too many to ask for, so that the attempt lists.
//
// No wake-up is lost as far as we know. If one is lost all the same, it costs a session timeout,
// and the contender does not wait for ever. To ask for a few nodes by name keeps all contenders
// of a long queue from listing it.
func (a *attempt) allThere(ctx context.Context, targets []blocker) (bool, error) {
	if len(targets) > fewTargets {
		return false, nil
	}
	for _, b := range append([]blocker{{node: a.node}}, targets...) {
		stat, err := a.s.Exists(ctx, path.Join(a.q.dir, b.node.Name))
		if err != nil || stat == nil {
			return false, err
		}
	}
	if a.configW == nil {
		return true, nil
	}
	config, err := readConfig(ctx, a.s, a.q.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil // our node is gone too, and the next listing says so
	}
	return config.Changed == a.config.Changed, err
}

// watch sends all requests for watches together, and waits for their answers. It returns those on
// the targets, with nil for a node that is gone.
func (a *attempt) watch(ctx context.Context, targets []blocker) ([]plumbing.Watch, error) {
	own, err := plumbing.Of(a.s).StartWatch(ctx, a.path)
	if err != nil {
		return nil, err
	}
	if a.r.Kind.configuration != nil {
		if a.configW, err = plumbing.Of(a.s).StartWatch(ctx, a.q.dir); err != nil {
			return nil, err
		}
	}
	watches := make([]plumbing.Watch, len(targets))
	for i, b := range targets {
		if watches[i], err = a.watchAhead(ctx, b.node.Name); err != nil {
			return nil, err
		}
	}
	if err := a.settleOwn(ctx, own); err != nil {
		return nil, err
	}
	return watches, a.settleAhead(ctx, targets, watches)
}

// settleOwn waits for the answers about our own node and the configuration.
func (a *attempt) settleOwn(ctx context.Context, own plumbing.Watch) error {
	_, stat, err := a.settle(ctx, own)
	if errors.Is(err, zk.ErrNoNode) {
		return errDeleted
	}
	if err != nil {
		return err
	}
	a.own, a.czxid = own, stat.Czxid
	if a.configW == nil {
		return nil
	}
	_, stat, err = a.settle(ctx, a.configW)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return errDeleted // the directory is gone, and our node with it
	case err != nil:
		return err
	case stat.Mzxid != a.config.Changed:
		return errReconfigured
	}
	return nil
}

// settleAhead waits for the answers about the targets.
func (a *attempt) settleAhead(ctx context.Context, targets []blocker, watches []plumbing.Watch) error {
	for i, w := range watches {
		_, stat, err := a.settle(ctx, w)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			watches[i] = nil
		case err != nil:
			return err
		default:
			targets[i].replaces = targets[i].replaces && !a.policy.lasts(stat)
			a.warnOfOrphan(targets[i].node.Name, stat)
		}
	}
	return nil
}

// watchAhead returns a watch on a node ahead. It takes that of the last wait if it is pending, or
// has told that the node is gone. The last listing may still show a node that is gone: the two
// answers cross when a holder leaves at once. To ask again would cost a round trip.
func (a *attempt) watchAhead(ctx context.Context, name string) (plumbing.Watch, error) {
	if w := a.view.watchOn(name); w != nil {
		switch w.Event() {
		case plumbing.WatchPending, plumbing.WatchDeleted:
			return w, nil
		}
	}
	return plumbing.Of(a.s).StartWatch(ctx, path.Join(a.q.dir, name))
}

// settle waits for the answer to a StartWatch.
func (a *attempt) settle(ctx context.Context, w plumbing.Watch) ([]byte, *zk.Stat, error) {
	if err := a.until(ctx, w.Ready()); err != nil {
		return nil, nil, err
	}
	return w.Result()
}
