package queue

import (
	"slices"

	"github.com/turnstile-go/turnstile/session"
)

// Blocker is a contender that is in the way.
type Blocker struct {
	Node   Node
	Weight int
	Moves  bool // it may leave another node in its place
}

// Verdict is what a listing says to a contender.
type Verdict struct {
	Go       bool
	Watch    []Blocker // the last of those in the way, in the order of the queue
	Beyond   int       // how many are in the way ahead of these
	Rest     int       // what those weigh
	Head     int       // how many of Watch are the first of the queue: the first of them that stands holds
	OnlyKept bool      // all in the way are places that may be kept, and nobody is known to want them
	Crowded  bool      // a contender behind has to wait for our node
	Stranger *Node     // of another kind of lock; if there is one, nothing else counts
}

// Count returns how many are in the way.
func (v *Verdict) Count() int { return v.Beyond + len(v.Watch) }

// Decide reads the names of a listing, in any order, for the contender me with policy p. If me has entered, the
// listing must show it.
//
// Only lower sequences are ahead, and no later arrival gets ahead of me. So what is in the way by one listing is in
// the way or gone later. A writer that becomes a reader has two nodes with one sequence, which do not wait for each
// other.
func Decide(k *Kind, p Policy, me Node, names []string) Verdict {
	v := Verdict{OnlyKept: true}
	ahead := 0
	first := me.Sequence
	for _, name := range names {
		n, ok := ParseNode(name, k.Prefixes...)
		if !ok || n.ID == me.ID && n.ID != "" { // our own, or that of a create whose reply was lost
			continue
		}
		if !slices.Contains(k.Prefixes, n.Prefix) {
			stranger := n // n itself would always be on the heap
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
	for i := 1; i < len(v.Watch); i++ { // one that waits wants the lock
		if k.blocks(v.Watch[i-1].Node, v.Watch[i].Node) {
			v.OnlyKept = false
		}
	}
	return v
}

// add keeps in Watch the shortest tail that weighs more than 1.5 × slack, and one node more.
//
// The node more makes it list shortly before its turn, so that its turn needs no request. With the further half of
// slack, it lists once for every slack/2 releases, and not up to slack contenders at each.
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
	Wait Next = iota
	Free
	List
	Gone
)

// Look decides by watches alone: v is the verdict of the last listing, seen[i] has been told by the watch on
// v.Watch[i], and own by the watch on the contender's own node.
//
// Events of one connection come in order. So if the own node went before one ahead did, own has told by the time seen
// has, provided that its watch was answered by then. The caller sees to that.
func Look(v *Verdict, slack int, seen []session.WatchEvent, own session.WatchEvent) Next {
	standing, gone, unclear := 0, false, false
	for i, event := range seen {
		switch {
		case event == session.WatchPending:
			standing = addWeights(standing, v.Watch[i].Weight)
		case event == session.WatchDeleted && !v.Watch[i].Moves:
			gone = true
		default: // changed, or unwatched, or replaced: that grants nothing
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
		return Wait // a listing has no more to tell, or one more can leave first
	}
	return List
}
