package locks

import (
	"slices"

	"github.com/turnstile-go/turnstile/queue"
)

// Kind is the kind of lock at a path, as far as its children tell, in words.
type Kind string

// The kinds.
const (
	None      Kind = ""                              // no contenders
	Mutex     Kind = "mutex"                         // zklock, Curator, zk.Lock, kazoo
	Election  Kind = "election"                      // election, Curator's LeaderLatch
	RWLock    Kind = "read-write lock"               // rwlock, Curator, kazoo
	Semaphore Kind = "semaphore"                     // package semaphore
	Curator   Kind = "semaphore in Curator's layout" // InterProcessSemaphoreV2, or package semaphore in its layout
	Conflict  Kind = "CONFLICT"                      // contenders of several kinds
)

// The directories of a semaphore in Curator's layout: a mutex as a gate, and the leases.
const (
	curatorLocks  = "locks"
	curatorLeases = "leases"
)

// limitPin is the child of a semaphore whose limit was set with Resize.
const limitPin = "limit"

// Prefixes of the nodes of elections. Those of Curator's LeaderSelector and of kazoo's Election are a mutex's.
const (
	candidate        = "elect-"
	prefixElect      = candidate + queue.PrefixLock
	prefixElectLatch = candidate + queue.PrefixLatch
)

// kinds have the prefixes of the contenders of each kind. The first kind counts that has those of all
// nodes. Kazoo's exclusive nodes have the same name in a mutex and in a read-write lock. Alone they are
// shown as a mutex.
var kinds = []struct {
	kind     Kind
	prefixes []string
}{
	{Mutex, []string{queue.PrefixLock, queue.PrefixKazooLock}},
	{Election, []string{prefixElect, queue.PrefixLock, queue.PrefixKazooLock}},
	{Election, []string{prefixElectLatch, queue.PrefixLatch}},
	{RWLock, []string{queue.PrefixRead, queue.PrefixWrite, queue.PrefixKazooLock, queue.PrefixKazooRead}},
	{Semaphore, []string{queue.PrefixLease}},
	{Conflict, []string{
		prefixElect, prefixElectLatch, queue.PrefixLatch, queue.PrefixLock, queue.PrefixRead, queue.PrefixWrite,
		queue.PrefixKazooLock, queue.PrefixKazooRead, queue.PrefixLease,
	}},
}

// parse parses the name of a contender of any kind.
func parse(name string) (queue.Node, bool) {
	return queue.ParseNode(name, prefixElect, prefixElectLatch)
}

// classify returns the kind of lock whose directory has these children, the prefixes of its contenders, and the children
// that are none, sorted.
func classify(names []string) (kind Kind, prefixes, others []string) {
	var found []string
	for _, name := range names {
		if n, ok := parse(name); ok {
			found = append(found, n.Prefix)
		} else {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	if slices.Contains(others, curatorLocks) && slices.Contains(others, curatorLeases) {
		kind = Curator
	}
	for _, k := range kinds {
		switch {
		case len(found) == 0, slices.ContainsFunc(found, func(p string) bool { return !slices.Contains(k.prefixes, p) }):
		case kind == Curator:
			return Conflict, kinds[len(kinds)-1].prefixes, others
		default:
			return k.kind, k.prefixes, others
		}
	}
	return kind, nil, others
}

// rule returns the rule of package queue for contenders with some prefixes.
func rule(kind Kind, prefixes []string, limit int) *queue.Kind {
	r := queue.Mutex()
	switch kind {
	case RWLock:
		r = queue.Writer()
	case Semaphore:
		r = queue.Semaphore(limit)
	}
	r.Prefixes = prefixes
	return r
}
