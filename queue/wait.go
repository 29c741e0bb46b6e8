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
	toAsk := false
	recheck := time.NewTimer(a.s.Timeout())
	defer recheck.Stop()
	for {
		seen := look(rest, targets, watches, a.own, a.configW, a.slack)
		if seen == turnCame {
			// If the watch on our node is not set yet, the node can be gone without our knowing.
			if err := a.until(ctx, a.own.Set()); err != nil {
				return false, err
			}
			seen = look(rest, targets, watches, a.own, a.configW, a.slack)
		}
		switch seen {
		case turnCame:
			return true, nil
		case lookAgain:
			return false, nil
		case placeLost:
			return false, errDeleted
		case nothingYet:
			told.follow(ctx, a.q.hooks(), a.q, targets, watches)
			if !toAsk && !a.view.tells() {
				toAsk = true
				recheck.Reset(askAfter)
			}
		}
		select {
		case <-a.wake:
		case <-recheck.C:
			recheck.Reset(a.s.Timeout())
			there, err := true, error(nil)
			if toAsk {
				toAsk, err = false, a.ask(ctx)
			} else {
				there, err = a.allThere(told.ctx, targets)
			}
			if !there || err != nil {
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
