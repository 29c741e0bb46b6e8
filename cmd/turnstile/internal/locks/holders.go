package locks

import (
	"slices"

	"github.com/turnstile-go/turnstile/queue"
)

// holders says which of the contenders hold a lock of a kind, by the rule of package queue. limit is the
// number of leases of a semaphore, 0 if it is not known. A holder that a higher limit let in may not count as one.
func holders(kind Kind, nodes []queue.Node, limit int) []bool {
	var rule *queue.Kind
	switch kind {
	case Mutex, Election:
		rule = queue.Mutex()
	case RWLock:
		rule = queue.Writer()
	case Semaphore:
		rule = queue.Semaphore(limit)
	case Curator, Kazoo: // its leases; contenders that wait are in another directory
		return slices.Repeat([]bool{true}, len(nodes))
	case None, Conflict:
		return make([]bool, len(nodes))
	}
	holds, _ := queue.Holders(rule, nodes, queue.Config{}) // these kinds have no error
	return holds
}

// modeOf returns "read" or "write" for a contender of a read-write lock, and "" for others.
func modeOf(kind Kind, n queue.Node) string {
	switch {
	case kind != RWLock:
		return ""
	case n.Prefix == queue.PrefixWrite, n.Prefix == queue.PrefixKazooLock:
		return "write"
	}
	return "read"
}
