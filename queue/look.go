package queue

import (
	"github.com/turnstile-go/turnstile/internal/plumbing"
)

// sight is what a waiting contender makes of its watches.
type sight int

const (
	nothingYet sight = iota
	turnCame         // enough of those ahead are known to be gone
	lookAgain        // something happened that only a new listing can explain
	placeLost        // our own node is gone
)

// look decides, from the watches alone, what a waiting contender does next. At the last
// listing targets were in the way, and before them others that weigh rest; nobody has joined
// them since. The targets are watched; a nil watch stands for one who was gone already.
//
// Our own node is looked at last, and before it the directory's configuration, if there is
// one. Events of one connection arrive in order, so if the node went before one ahead did,
// its watch has ended by the time that one's has.
func look(rest int, targets []blocker, watches []plumbing.Watch, own, config plumbing.Watch, slack int) sight {
	standing := 0 // of the targets
	gone, again := false, false
	for i, w := range watches {
		event := plumbing.WatchDeleted
		if w != nil {
			event = w.Event()
		}
		switch {
		case event == plumbing.WatchPending:
			standing = add(standing, targets[i].weight)
		case event == plumbing.WatchDeleted && !targets[i].replaces:
			gone = true
		default:
			again = true // changed, or broken: watch it again. Neither grants anything.
		}
	}
	if config != nil && config.Event() != plumbing.WatchPending {
		again = true
	}
	switch own.Event() {
	case plumbing.WatchDeleted:
		return placeLost
	case plumbing.WatchPending:
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
		return nothingYet // everything in the way is watched: a listing would tell nothing new
	case standing > slack+1:
		return nothingYet // one more can go before it is time to look who else is in the way
	}
	return lookAgain
}
