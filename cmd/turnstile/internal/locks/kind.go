package locks

import (
	"cmp"
	"regexp"
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
	Kazoo     Kind = "kazoo-semaphore"   // kazoo's Semaphore
	Conflict  Kind = "conflict"          // contenders of several kinds
)

// The directories of a semaphore in Curator's layout.
const (
	curatorLocks  = "locks"
	curatorLeases = "leases"
)

// isKazooLease matches the children of kazoo's Semaphore. Each is a lease that is held. Its contenders wait, as those of a
// mutex, in a directory beside it, whose name has kazooGate at its end.
var isKazooLease = regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString

const kazooGate = "-__lock__"

// limitPin is the child of a semaphore whose limit was set with Resize.
const limitPin = "limit"

// candidate stands before the prefix in the names of the nodes of package election.
const candidate = "elect-"

// Prefixes of the nodes of elections. Those of Curator's LeaderSelector and of kazoo's Election are a mutex's.
const (
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
