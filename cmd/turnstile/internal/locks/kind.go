package locks

import (
	"slices"

	"github.com/turnstile-go/turnstile/queue"
)

// Kind is the kind of lock at a path, as far as its children tell. The values are part of the output
// of the command.
type Kind string

// The kinds.
const (
	None      Kind = ""                  // no contenders
	Mutex     Kind = "mutex"             // zklock, Curator, zk.Lock, kazoo
	RWLock    Kind = "rwlock"            // rwlock, Curator, kazoo
	Semaphore Kind = "semaphore"         // package semaphore
	Curator   Kind = "curator-semaphore" // InterProcessSemaphoreV2, or package semaphore in its layout
	Unfair    Kind = "unfair"            // zklock.WithUnfair
	Conflict  Kind = "conflict"          // contenders of several kinds
)

// The directories of a semaphore in Curator's layout.
const (
	curatorLocks  = "locks"
	curatorLeases = "leases"
)

// limitPin is the child of a semaphore whose limit was set with Resize.
const limitPin = "limit"

// prefixLatch is the prefix of Curator's LeaderLatch, which is a mutex.
const prefixLatch = "latch-"

// parse parses the name of a contender of any kind.
func parse(name string) (queue.Node, bool) { return queue.ParseNode(name, prefixLatch) }

// split splits the children of a directory into contenders, in order, and the other names, sorted.
func split(names []string) (nodes []queue.Node, others []string) {
	for _, name := range names {
		if n, ok := parse(name); ok {
			nodes = append(nodes, n)
		} else {
			others = append(others, name)
		}
	}
	slices.SortFunc(nodes, byPlace)
	slices.Sort(others)
	return nodes, others
}

// classify returns the kind of lock whose directory has these children.
func classify(nodes []queue.Node, others []string) Kind {
	if slices.Contains(others, curatorLocks) && slices.Contains(others, curatorLeases) {
		if len(nodes) > 0 {
			return Conflict
		}
		return Curator
	}
	if len(nodes) == 0 {
		return None
	}
	for _, k := range prefixesOf {
		if !slices.ContainsFunc(nodes, func(n queue.Node) bool { return !slices.Contains(k.prefixes, n.Prefix) }) {
			return k.kind
		}
	}
	return Conflict
}

// prefixesOf has the prefixes of the contenders of each kind. Kazoo's exclusive nodes have the same name
// in a mutex and in a read-write lock. Alone they are shown as a mutex.
var prefixesOf = []struct {
	kind     Kind
	prefixes []string
}{
	{Mutex, []string{queue.PrefixLock, queue.PrefixKazooLock, prefixLatch}},
	{RWLock, []string{queue.PrefixRead, queue.PrefixWrite, queue.PrefixKazooLock, queue.PrefixKazooRead}},
	{Semaphore, []string{queue.PrefixLease}},
	{Unfair, []string{queue.PrefixUnfair}},
}
