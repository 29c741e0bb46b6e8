package locks

import (
	"slices"

	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/queue"
)

// holders says which of the contenders hold a lock of a kind, by the rule of package queue. nodes are in order. limit is the
// number of leases of a semaphore, 0 if it is not known. A holder that a higher limit let in may not count as one.
func holders(kind Kind, nodes []queue.Node, limit int) []bool {
	var policy func(queue.Node) queue.Policy
	switch kind {
	case Mutex, Election:
		policy = decide.Exclusive
	case RWLock:
		policy = decide.ReadWrite
	case Semaphore:
		policy = decide.Leases(limit)
	case Curator, Kazoo: // its leases; contenders that wait are in another directory
		return slices.Repeat([]bool{true}, len(nodes))
	case None, Conflict:
		return make([]bool, len(nodes))
	}
	holds, _ := decide.Holders(nodes, // without an error: the policies have none
		func(n queue.Node) (decide.Rule, error) { return decide.Rule{Policy: policy(n)}, nil },
		func(int) bool { return false })
	return holds
}

// modeOf returns "read" or "write" for a contender of a read-write lock, and "" for others.
func modeOf(kind Kind, n queue.Node) string {
	switch {
	case kind != RWLock:
		return ""
	case decide.Writes(n):
		return "write"
	}
	return "read"
}
