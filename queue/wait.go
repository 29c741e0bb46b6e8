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

// wait watches those ahead whom the rule names, and our own node, until it is our turn
// (true), or until the directory has to be listed again.
func (a *attempt) wait(ctx context.Context, ahead []blocker) (bool, error) {
	// Of a long queue no more is kept than this while waiting.
	targets := slices.Clone(toWatch(ahead, a.slack))
	rest := weigh(ahead[:len(ahead)-len(targets)])
	watches, err := a.watch(ctx, targets)
	switch {
	case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, errReconfigured):
		return false, nil // list again; over the next connection, if this one is lost
	case err != nil:
		return false, err
	}
	told := watching{ctx: ctx}
	granted, err := a.await(ctx, &told, rest, targets, watches)
	told.end(err)
	return granted, err
}

// await returns when a watch has told something, or it is time to look again.
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

// fewTargets is up to how many nodes are asked for by name: to list is cheaper than more.
const fewTargets = 8

// allThere asks whether every node that is watched is still there; false also says that it
// is time to list. No wake-up is lost as far as we know; should one be all the same, it costs
// a session timeout and not for ever. Asking for few nodes by name keeps a long queue from
// being listed by every contender in it.
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
		return false, nil // and so is our node, as the next listing will tell
	}
	return config.Changed == a.config.Changed, err
}

// watch sets the watches that are missing, all at once. A node ahead that is gone already
// has a nil watch.
func (a *attempt) watch(ctx context.Context, targets []blocker) ([]plumbing.Watch, error) {
	own, err := plumbing.Of(a.s).StartWatch(ctx, a.nodePath())
	if err != nil {
		return nil, err
	}
	if a.r.Kind.Configured != nil {
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
	_, stat, err := a.settle(ctx, own)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, errDeleted
	}
	if err != nil {
		return nil, err
	}
	a.own, a.czxid = own, stat.Czxid
	if a.configW != nil {
		_, stat, err := a.settle(ctx, a.configW)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return nil, errDeleted // our node was in it
		case err != nil:
			return nil, err
		case stat.Mzxid != a.config.Changed:
			return nil, errReconfigured
		}
	}
	seen := make(map[string]plumbing.Watch, len(watches))
	for i := range watches {
		_, stat, err = a.settle(ctx, watches[i])
		if errors.Is(err, zk.ErrNoNode) {
			watches[i] = nil
		} else if err != nil {
			return nil, err
		} else {
			seen[targets[i].node.Name] = watches[i]
			targets[i].replaces = targets[i].replaces && !a.policy.lasts(stat)
		}
	}
	a.seen = seen
	return watches, nil
}

// watchAhead returns the watch on one ahead: that of the last wait, if it is still to tell
// something, or has told that the node is gone. The listing may be older than that: they
// come together if the holder leaves at once, and to ask again would cost a round trip.
func (a *attempt) watchAhead(ctx context.Context, name string) (plumbing.Watch, error) {
	if w := a.seen[name]; w != nil {
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
