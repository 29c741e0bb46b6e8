package queue

import (
	"fmt"
	"slices"

	"github.com/turnstile-go/turnstile/internal/decide"
)

// Mutex is the kind of lock of package zklock, of Curator's InterProcessMutex and of kazoo's Lock: each node ahead
// weighs 1, and no weight may remain. A [Kind] of your own, with another name or other prefixes, can have the Policy of
// this one.
func Mutex() *Kind {
	return &Kind{Name: "mutex", Prefixes: []string{PrefixLock, PrefixKazooLock}, Policy: decide.Exclusive}
}

// Reader is the kind of lock of the readers of package rwlock, of Curator's InterProcessReadWriteLock and of kazoo's
// ReadLock: writers ahead weigh 1, readers nothing, and no weight may remain. Its nodes are those of readers, unless a
// [Request] has the prefix of a writer.
func Reader() *Kind {
	return &Kind{
		Name:     "read",
		Prefixes: []string{PrefixRead, PrefixWrite, PrefixKazooLock, PrefixKazooRead},
		Policy:   decide.ReadWrite,
	}
}

// Writer is [Reader] for the writers of the same locks: each node ahead weighs 1, and no weight may remain. It differs
// in its name, and in that its nodes are those of writers.
func Writer() *Kind {
	return &Kind{
		Name:     "write",
		Prefixes: []string{PrefixWrite, PrefixRead, PrefixKazooLock, PrefixKazooRead},
		Policy:   decide.ReadWrite,
	}
}

// Semaphore is the kind of lock of package semaphore while its limit is maxLeases: each node ahead weighs what it asks for,
// and what remains ahead of a node may be maxLeases less what the node asks for. If maxLeases is 0, no node holds.
//
// It is for pages and tools. To take leases use package semaphore, whose users agree on a limit.
func Semaphore(maxLeases int) *Kind {
	return &Kind{Name: "semaphore", Prefixes: []string{PrefixLease}, Policy: decide.Leases(maxLeases)}
}

// Holders says which contenders hold a lock of a kind, by the names in a listing of its directory, and by the data of
// the directory if the kind has a [Configuration]. The nodes can be in any order. The answers are in the same order.
// Holders does no I/O. [Queue.Contenders] does both, and reads the nodes.
//
// A holder that a higher limit has let in may not count as one.
//
// A bad kind is an error that matches [session.ErrInvalid]. Other errors are those of the kind's Configuration.
func Holders(kind *Kind, nodes []Node, config Config) ([]bool, error) {
	if err := kind.Check(); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return decide.Compare(nodes[i], nodes[j]) })
	sorted := make([]Node, len(nodes))
	for at, i := range order {
		sorted[at] = nodes[i]
	}
	ruleOf := func(n Node) (decide.Rule, error) { return decide.RuleOf(kind, n, config) }
	holds, err := decide.Holders(sorted, ruleOf, func(int) bool { return false })
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	out := make([]bool, len(nodes))
	for at, i := range order {
		out[i] = holds[at]
	}
	return out, nil
}
