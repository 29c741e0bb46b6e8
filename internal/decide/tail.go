package decide

import (
	"slices"

	"github.com/turnstile-go/turnstile/kinds"
)

// tail is all that a contender needs of a listing: of the nodes in its way, the last ones by name, and
// of the others how many they are and what they weigh. In a long queue nearly all names are read once
// and not kept, and there is next to nothing to sort.
type Tail struct {
	slack  int
	Last   []Blocker // once sorted: what toWatch returns of all nodes in the way
	Beyond int       // nodes in the way ahead of those
	Rest   int       // what those weigh

	Firm bool // some node in the way does not say that its place may be kept

	full int  // sort and cut the tail when it has this length
	cut  bool // last was cut, so whatever comes before its first node is beyond

	// The first node ahead that is not in the way, or the contender itself. The nodes in the way that
	// come before it are the first contenders of the queue.
	free kinds.Node
}

func NewTail(me kinds.Node, slack int) *Tail { return &Tail{slack: slack, full: fewest, free: me} }

// fewest is how many nodes a tail has at least before it is cut.
const fewest = 64

// passes takes a node ahead that is not in the way.
func (t *Tail) Passes(n kinds.Node) {
	if Compare(n, t.free) < 0 {
		t.free = n
	}
}

// add takes a node in the way. The nodes come in any order.
func (t *Tail) Add(b Blocker) {
	t.Firm = t.Firm || !b.Node.MayKeep
	if t.cut && Compare(b.Node, t.Last[0].Node) < 0 {
		t.Beyond, t.Rest = t.Beyond+1, Sum(t.Rest, b.Weight)
		return
	}
	if t.Last = append(t.Last, b); len(t.Last) >= t.full {
		t.Sort()
	}
}

// sort sorts the tail and cuts it: what toWatch does not return now, it does not return when there
// are more nodes either. It is called once more when there are no more nodes.
func (t *Tail) Sort() {
	slices.SortFunc(t.Last, func(a, b Blocker) int { return Compare(a.Node, b.Node) })
	n := len(t.Last) - len(ToWatch(t.Last, t.slack))
	if n == 0 {
		t.full = 2 * len(t.Last)
		return
	}
	t.Beyond, t.Rest, t.cut = t.Beyond+n, Sum(t.Rest, Weigh(t.Last[:n])), true
	t.Last = slices.Delete(t.Last, 0, n)
	t.full = max(fewest, 2*len(t.Last))
}

// count returns how many nodes are in the way.
func (t *Tail) Count() int { return t.Beyond + len(t.Last) }

// mayGo is mayGo of all nodes in the way.
func (t *Tail) MayGo() bool { return Sum(t.Rest, Weigh(t.Last)) <= t.slack }

// Wanted reports whether the nodes in the way are known not to be places that nobody uses: one does not say that its
// place may be kept, or waits for another of them and so wants the lock. The tail has been sorted.
func (t *Tail) Wanted(k *kinds.Kind) bool {
	for i := 1; i < len(t.Last); i++ {
		if WaitsFor(k, t.Last[i].Node, t.Last[i-1].Node) {
			return true
		}
	}
	return t.Firm
}

// head returns how many of the nodes in the way are the first contenders of the queue. The first that
// stands of these holds, since no other contender is ahead of it. It returns 0 if there are nodes
// beyond the tail.
func (t *Tail) Head() int {
	if t.Beyond > 0 {
		return 0
	}
	n, _ := slices.BinarySearchFunc(t.Last, t.free, func(b Blocker, n kinds.Node) int { return Compare(b.Node, n) })
	return n
}
