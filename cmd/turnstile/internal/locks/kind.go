package locks

import (
	"cmp"
	"slices"
	"strings"

	"github.com/turnstile-go/turnstile/queue"
)

// Kind is the kind of lock at a path, as far as its children tell. The values are part of the output
// of the command.
type Kind string

// The kinds.
const (
	None      Kind = ""                  // no contenders
	Mutex     Kind = "mutex"             // zklock, Curator, zk.Lock, kazoo
	Election  Kind = "election"          // election, Curator's LeaderLatch
	RWLock    Kind = "rwlock"            // rwlock, Curator, kazoo
	Semaphore Kind = "semaphore"         // package semaphore
	Curator   Kind = "curator-semaphore" // InterProcessSemaphoreV2, or package semaphore in its layout
	Conflict  Kind = "conflict"          // contenders of several kinds
)

// Text is the kind in a sentence.
func (k Kind) Text() string {
	switch k {
	case RWLock:
		return "read-write lock"
	case Curator:
		return "semaphore in Curator's layout"
	case Conflict:
		return "CONFLICT"
	}
	return string(k)
}

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

// parse parses the name of a contender of any kind.
func parse(name string) (queue.Node, bool) {
	return queue.ParseNode(name, prefixElect, prefixElectLatch)
}

// split splits the children of a directory into contenders, in order, and the other names, sorted.
func split(names []string) (nodes []queue.Node, others []string) {
	for _, name := range names {
		if n, ok := parse(name); ok {
			nodes = append(nodes, n)
		} else {
			others = append(others, name)
		}
	}
	slices.SortFunc(nodes, func(a, b queue.Node) int {
		return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), strings.Compare(a.Name, b.Name))
	})
	slices.Sort(others)
	return nodes, others
}

// classify returns the kind of lock whose directory has these children.
func classify(nodes []queue.Node, others []string) Kind {
	switch {
	case slices.Contains(others, curatorLocks) && slices.Contains(others, curatorLeases) && len(nodes) == 0:
		return Curator
	case slices.Contains(others, curatorLocks) && slices.Contains(others, curatorLeases):
		return Conflict
	case len(nodes) == 0:
		return None
	}
	for _, k := range prefixesOf {
		if !slices.ContainsFunc(nodes, func(n queue.Node) bool { return !slices.Contains(k.prefixes, n.Prefix) }) {
			return k.kind
		}
	}
	return Conflict
}

// prefixesOf has the prefixes of the contenders of each kind. The first kind counts that has those of all
// nodes. Kazoo's exclusive nodes have the same name in a mutex and in a read-write lock. Alone they are
// shown as a mutex.
var prefixesOf = []struct {
	kind     Kind
	prefixes []string
}{
	{Mutex, []string{queue.PrefixLock, queue.PrefixKazooLock}},
	{Election, []string{prefixElect, queue.PrefixLock, queue.PrefixKazooLock}},
	{Election, []string{prefixElectLatch, queue.PrefixLatch}},
	{RWLock, []string{queue.PrefixRead, queue.PrefixWrite, queue.PrefixKazooLock, queue.PrefixKazooRead}},
	{Semaphore, []string{queue.PrefixLease}},
}

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
	case Curator: // its leases; contenders that wait are in another directory
		return slices.Repeat([]bool{true}, len(nodes))
	case None, Conflict:
		return make([]bool, len(nodes))
	}
	holds, _ := queue.Holders(rule, nodes, queue.Config{}) // these kinds have no error
	return holds
}
