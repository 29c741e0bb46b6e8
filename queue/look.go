package queue

import "github.com/turnstile-go/turnstile/session"

// Next is what a waiting contender does.
type Next uint8

const (
	Wait Next = iota // nothing has changed that matters
	Free             // it may go
	List             // only a listing tells
	Gone             // its own node was deleted
)

// Look decides by watches alone. Nothing but v.Watch, and before these others that weigh v.Rest, was in the way by the last
// listing, and nobody has come ahead since. seen[i] is what the watch on v.Watch[i] has told, and own what the watch on
// the contender's own node has.
//
// Events of one connection come in order. If the own node went before one ahead did, the watch on the own node has ended
// by the time the other watch has, provided that it was answered by then. The caller sees to that.
func Look(v *Verdict, slack int, seen []session.WatchEvent, own session.WatchEvent) Next {
	standing, gone, unclear := 0, false, false
	for i, event := range seen {
		switch {
		case event == session.WatchPending:
			standing = addWeights(standing, v.Watch[i].Weight)
		case event == session.WatchDeleted && !v.Watch[i].Moves:
			gone = true
		default: // changed, or the watch was lost, or another node may have its place: that grants nothing
			unclear = true
		}
	}
	switch {
	case own == session.WatchDeleted:
		return Gone
	case own != session.WatchPending || unclear:
		return List
	case !gone:
		return Wait
	case addWeights(v.Rest, standing) <= slack:
		return Free
	case v.Rest == 0 || standing > addWeights(slack, 1):
		return Wait // a listing has no more to tell, or one more can go before it is time for one
	}
	return List
}
