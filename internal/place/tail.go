package place

import (
	"slices"

	"github.com/turnstile-go/turnstile/kinds"
)

// tail is all that a contender needs of a listing: of the nodes in its way, the last ones by name, and
// of the others how many they are and what they weigh. In a long queue nearly all names are read once
// and not kept, and there is next to nothing to sort.
type tail struct {
	slack  int
	last   []blocker // once sorted: what toWatch returns of all nodes in the way
	beyond int       // nodes in the way ahead of those
	rest   int       // what those weigh

	firm bool // some node in the way does not say that its place may be kept

	full int  // sort and cut the tail when it has this length
	cut  bool // last was cut, so whatever comes before its first node is beyond

	// The first node ahead that is not in the way, or the contender itself. The nodes in the way that
	// come before it are the first contenders of the queue.
	free kinds.Node
}

func newTail(me kinds.Node, slack int) *tail { return &tail{slack: slack, full: fewest, free: me} }

// fewest is how many nodes a tail has at least before it is cut.
const fewest = 64

// passes takes a node ahead that is not in the way.
func (t *tail) passes(n kinds.Node) {
	if compareNodes(n, t.free) < 0 {
		t.free = n
	}
}

// add takes a node in the way. The nodes come in any order.
func (t *tail) add(b blocker) {
	t.firm = t.firm || !b.node.MayKeep
	if t.cut && compareNodes(b.node, t.last[0].node) < 0 {
		t.beyond, t.rest = t.beyond+1, add(t.rest, b.weight)
		return
	}
	if t.last = append(t.last, b); len(t.last) >= t.full {
		t.sort()
	}
}

// sort sorts the tail and cuts it: what toWatch does not return now, it does not return when there
// are more nodes either. It is called once more when there are no more nodes.
func (t *tail) sort() {
	slices.SortFunc(t.last, func(a, b blocker) int { return compareNodes(a.node, b.node) })
	n := len(t.last) - len(toWatch(t.last, t.slack))
	if n == 0 {
		t.full = 2 * len(t.last)
		return
	}
	t.beyond, t.rest, t.cut = t.beyond+n, add(t.rest, weigh(t.last[:n])), true
	t.last = slices.Delete(t.last, 0, n)
	t.full = max(fewest, 2*len(t.last))
}

// count returns how many nodes are in the way.
func (t *tail) count() int { return t.beyond + len(t.last) }

// mayGo is mayGo of all nodes in the way.
func (t *tail) mayGo() bool { return add(t.rest, weigh(t.last)) <= t.slack }

// head returns how many of the nodes in the way are the first contenders of the queue. The first that
// stands of these holds, since no other contender is ahead of it. It returns 0 if there are nodes
// beyond the tail.
func (t *tail) head() int {
	if t.beyond > 0 {
		return 0
	}
	n, _ := slices.BinarySearchFunc(t.last, t.free, func(b blocker, n kinds.Node) int { return compareNodes(b.node, n) })
	return n
}
