package decide

// Event is what the watch on a node has told.
type Event uint8

const (
	Stands  Event = iota // nothing, so the node stands as far as is known
	Gone                 // the node is gone
	Unclear              // the node has changed, or the watch was lost
)

// Sight is what a contender sees of a node in its way.
type Sight struct {
	Event  Event
	Moves  bool // if the node goes, another one may have its place
	Waits  bool // its contender says that it waits, and that it counts the same nodes
	Served bool // its contender says that it had nobody ahead of it when it was granted
}

// A contender says on the watch on its node that it waits, and later that no contender was ahead when it went. The
// contenders behind it in the same session share that watch. So they need no listing of their own to learn that the
// nodes which they do not watch are gone. Without that, a burst of n contenders in one session costs n listings of up
// to n names.

// BySight decides, from the watches alone, what a waiting contender does next: Free, Lost, Stirred or Quiet.
//
// By the last listing, the nodes in the way are the targets, and before them other nodes that weigh
// rest. No node has joined them since. seen[i] is what is seen of targets[i]. reconfigured says that
// the configuration is another one than that of the listing.
//
// Our own node comes last. Events of one connection arrive in
// order. So if our node went before a node ahead did, the watch on it has ended by the time the
// other watch has, provided that it was set by then. The caller sees to that.
func BySight(rest int, targets []Blocker, seen []Sight, own Event, reconfigured bool, slack int) Input {
	standing := 0 // the weight of the targets that stand
	gone, again := false, reconfigured
	for i, s := range seen {
		if s.Served || s.Waits && s.Event == Stands {
			rest = 0 // these are gone, or this one will say when they are
		}
		switch {
		case s.Event == Stands:
			standing = Sum(standing, targets[i].Weight)
		case s.Event == Gone && !s.Moves:
			gone = true
		default:
			again = true // changed, or the watch was lost. Neither grants anything: watch again.
		}
	}
	switch own {
	case Gone:
		return Lost
	case Unclear:
		again = true
	}
	switch {
	case again:
		return Stirred
	case !gone:
		return Quiet
	case Sum(rest, standing) <= slack:
		return Free
	case rest == 0:
		return Quiet // all nodes in the way are watched: a listing has no more to tell
	case standing > slack+1:
		return Quiet // one more node can go before it is time to list the others
	}
	return Stirred
}
