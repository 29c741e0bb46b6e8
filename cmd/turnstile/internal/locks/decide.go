package locks

import (
	"cmp"
	"math"
	"strings"

	"github.com/turnstile-go/turnstile/queue"
)

// byPlace orders contenders as package queue does.
func byPlace(a, b queue.Node) int {
	return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), strings.Compare(a.Name, b.Name))
}

// decide says which of the contenders hold a lock of a kind. nodes are in order. limit is the number of
// leases of a semaphore, 0 if it is not known. The rules are those of package queue: a contender may go
// when what is ahead of it leaves room. A holder that a higher limit let in may not count as one.
func decide(kind Kind, nodes []queue.Node, limit int) []bool {
	holds := make([]bool, len(nodes))
	switch kind {
	case Mutex, Election, Unfair:
		for i := range nodes {
			holds[i] = i == 0
		}
	case RWLock:
		decideReadWrite(nodes, holds)
	case Semaphore:
		taken := 0
		for i, n := range nodes {
			taken = addUp(taken, n.Weight)
			holds[i] = limit > 0 && taken <= limit
		}
	case Curator, Kazoo: // its leases; contenders that wait are in another directory
		for i := range nodes {
			holds[i] = true
		}
	case None, Conflict:
	}
	return holds
}

// decideReadWrite lets readers go when no writer is ahead, and writers when nothing is. A writer that
// becomes a reader has two nodes of one sequence for a moment, which do not wait for each other.
func decideReadWrite(nodes []queue.Node, holds []bool) {
	for i, n := range nodes {
		holds[i] = true
		for _, ahead := range nodes[:i] {
			if ahead.Sequence != n.Sequence && (writes(n) || writes(ahead)) {
				holds[i] = false
				break
			}
		}
	}
}

func writes(n queue.Node) bool {
	return n.Prefix == queue.PrefixWrite || n.Prefix == queue.PrefixKazooLock
}

// modeOf returns "read" or "write" for a contender of a read-write lock, and "" for others.
func modeOf(kind Kind, n queue.Node) string {
	switch {
	case kind != RWLock:
		return ""
	case writes(n):
		return "write"
	}
	return "read"
}

func addUp(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}
