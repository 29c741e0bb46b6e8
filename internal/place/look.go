package place

import (
	"slices"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/kinds"
)

// sight is what the watches of a waiting contender say.
type sight int

const (
	nothingYet sight = iota
	turnCame         // enough of the nodes ahead are known to be gone
	lookAgain        // only a new listing can explain what happened
	placeLost        // our own node is gone
)

// A contender says on the watch on its node that it waits, and later that no contender was ahead when it went (core.Owner).
// The contenders behind it in the same session share that watch. So they need no listing of their own to learn that the
// nodes which they do not watch are gone. Without that, a burst of n contenders in one session costs n listings of up to
// n names. It needs both to count the same nodes, each until it is gone: both are plain.

// plain reports whether the attempt counts every contender ahead of it, and goes when all of them are gone.
func (a *attempt) plain() bool {
	further := func(prefix string) bool { // that not every contender knows
		n, ok := kinds.ParseNode(prefix + "0000000000")
		return !ok || n.Prefix != prefix
	}
	return a.policy.Weight == nil && a.policy.Replaces == nil && a.slack == 0 && a.r.Kind.Configuration == nil &&
		a.entry.beside == nil && !a.doubt && !slices.ContainsFunc(a.r.Kind.Prefixes, further)
}

// reconfigured reports whether the configuration has changed since the last listing, as far as the servers have told.
func (a *attempt) reconfigured() bool {
	if a.configW == nil {
		return false
	}
	_, stat := known(a.configW)
	return a.configW.Event() != core.WatchPending || stat != nil && stat.Mzxid != a.config.Changed
}

// look decides, from the watches alone, what a waiting contender does next.
//
// By the last listing, the nodes in the way are the targets, and before them other nodes that weigh
// rest. No node has joined them since. watches[i] is the watch on targets[i]. reconfigured says that
// the configuration is another one than that of the listing.
//
// Our own node comes last. Events of one connection arrive in
// order. So if our node went before a node ahead did, the watch on it has ended by the time the
// other watch has, provided that it was set by then. The caller sees to that.
func look(rest int, targets []blocker, watches []*core.Watch, own *core.Watch, reconfigured bool, p rule, slack int) sight {
	standing := 0 // the weight of the targets that stand
	gone, again := false, reconfigured
	for i, w := range watches {
		event := w.Event()
		if o := targets[i].owner(w); o == core.OwnerFirst || o == core.OwnerWaits && event == core.WatchPending {
			rest = 0 // these are gone, or this one will say when they are
		}
		switch {
		case event == core.WatchPending:
			standing = add(standing, targets[i].weight)
		case event == core.WatchDeleted && !(targets[i].replaces && !p.lasts(w)):
			gone = true
		default:
			again = true // changed, or the watch was lost. Neither grants anything: watch again.
		}
	}
	switch own.Event() {
	case core.WatchDeleted:
		return placeLost
	case core.WatchPending:
	default:
		again = true
	}
	switch {
	case again:
		return lookAgain
	case !gone:
		return nothingYet
	case add(rest, standing) <= slack:
		return turnCame
	case rest == 0:
		return nothingYet // all nodes in the way are watched: a listing has no more to tell
	case standing > slack+1:
		return nothingYet // one more node can go before it is time to list the others
	}
	return lookAgain
}
