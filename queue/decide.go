package queue

import (
	"slices"

	"github.com/turnstile-go/turnstile/session"
)

// Blocker is a contender that is in the way of ours.
type Blocker struct {
	Node   Node
	Weight int
	Moves  bool // when it goes, another node may have its place
}

// Verdict is what a listing says to a contender.
type Verdict struct {
	Go       bool      // nothing is in the way
	Watch    []Blocker // the last of those in the way, in order of their sequence: the contender watches them
	Beyond   int       // how many are in the way ahead of these
	Rest     int       // what those weigh
	Head     int       // so many of Watch are the first contenders of the queue: the first of them that stands holds
	OnlyKept bool      // all in the way are places that may be kept, and that nobody is known to want
	Crowded  bool      // a contender behind has to wait for our node
	Stranger *Node     // a contender for another kind of lock, or nil; if there is one, nothing else counts
}

// Count returns how many contenders are in the way.
func (v *Verdict) Count() int { return v.Beyond + len(v.Watch) }

// Decide reads the names of a listing, in any order, for the contender me, whose policy is p. If me has entered, the
// listing must show it.
//
// Only nodes with a lower sequence are ahead. No later arrival gets ahead of me, so what is in the way by one listing
// is in the way or gone later. The two nodes of a writer that goes on as a reader share a sequence, and neither waits
// for the other.
func Decide(k *Kind, p Policy, me Node, names []string) Verdict {
	v := Verdict{OnlyKept: true}
	ahead := 0           // what all that are in the way weigh
	first := me.Sequence // of a node ahead that is not in the way, or of ours
	for _, name := range names {
		n, ok := ParseNode(name, k.Prefixes...)
		if !ok || n.ID == me.ID && n.ID != "" { // our own, or one more that a create has made whose reply was lost
			continue
		}
		if !slices.Contains(k.Prefixes, n.Prefix) {
			stranger := n // so that only this one is on the heap
			return Verdict{Stranger: &stranger}
		}
		weight := 0
		if n.Sequence < me.Sequence {
			weight = p.weigh(n)
		}
		switch {
		case weight > 0:
			ahead = addWeights(ahead, weight)
			v.OnlyKept = v.OnlyKept && n.MayKeep
			v.add(Blocker{n, weight, p.replaces(n)}, p.Slack)
		case n.Sequence < first:
			first = n.Sequence
		case n.Sequence > me.Sequence:
			v.Crowded = v.Crowded || k.blocks(me, n)
		}
	}
	v.Go = ahead <= p.Slack
	if v.Beyond == 0 {
		for v.Head < len(v.Watch) && v.Watch[v.Head].Node.Sequence < first {
			v.Head++
		}
	}
	for i := 1; i < len(v.Watch); i++ { // a contender that waits wants the lock, whatever its name says
		if k.blocks(v.Watch[i-1].Node, v.Watch[i].Node) {
			v.OnlyKept = false
		}
	}
	return v
}

// add takes a node in the way. Of those in the way it keeps the ones to watch: the shortest tail that weighs more than
// one and a half times slack, and one more before it.
//
// While more than slack of the tail stands, the contender may not go, and has nothing to ask. The node beyond the tail
// lets it list shortly before its turn: if no others are ahead by then, its turn needs no request. The further half of
// slack is for locks with many leases: a contender then lists once for every slack/2 releases. Without it, each release
// would make up to slack contenders list.
func (v *Verdict) add(b Blocker, slack int) {
	if v.Beyond > 0 && b.Node.Sequence < v.Watch[0].Node.Sequence {
		v.Beyond, v.Rest = v.Beyond+1, addWeights(v.Rest, b.Weight)
		return
	}
	i, _ := slices.BinarySearchFunc(v.Watch, b, func(a, b Blocker) int { return compareNodes(a.Node, b.Node) })
	v.Watch = slices.Insert(v.Watch, i, b)
	for len(v.Watch) > 2 && weightOf(v.Watch[2:]) > addWeights(slack, slack/2) {
		v.Beyond, v.Rest = v.Beyond+1, addWeights(v.Rest, v.Watch[0].Weight)
		v.Watch = slices.Delete(v.Watch, 0, 1)
	}
}

func weightOf(all []Blocker) (sum int) {
	for _, b := range all {
		sum = addWeights(sum, b.Weight)
	}
	return sum
}

// Next is what a waiting contender does.
type Next uint8

const (
	Wait Next = iota // nothing has changed that matters
	Free             // it may go
	List             // only a listing tells
	Gone             // its own node was deleted
)

// Look decides by watches alone. By the last listing v.Watch was in the way, and before these others that weigh v.Rest.
// seen[i] is what the watch on v.Watch[i] has told, and own what the watch on the contender's own node has.
//
// Events of one connection come in order. If the own node went before one ahead did, the watch on the own node has
// ended by the time the other watch has, provided that it was answered by then. The caller sees to that.
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
