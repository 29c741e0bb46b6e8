package locks

import (
	"math"
	"path"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
)

func hex(n uint64) string { return strconv.FormatUint(n, 16) }

// Lock is a directory of contenders.
type Lock struct {
	Path       string
	Kind       Kind
	Limit      int         // leases of a semaphore; 0: not known
	LimitSet   bool        // an operator has set the limit
	Contenders []Contender // in order
	Others     []string    // children that are no contenders, sorted
	Stat       *zk.Stat    // of the directory
	Written    int64       // the transaction that wrote the data of the directory from which Limit was read

	// Changes counts the contenders that came and those that left, from when the directory was made. Birth is
	// that time, as a transaction. For a semaphore of Curator or kazoo both are sums over two directories.
	Changes, Birth int64
}

// Count adds a directory of contenders to Changes and Birth.
func (l *Lock) Count(stat *zk.Stat) {
	l.Changes += int64(stat.Cversion)
	l.Birth += stat.Czxid
}

// Holders returns the contenders that hold the lock.
func (l *Lock) Holders() []Contender {
	var out []Contender
	for _, c := range l.Contenders {
		if c.Holds {
			out = append(out, c)
		}
	}
	return out
}

// Waiting returns how many contenders wait.
func (l *Lock) Waiting() int { return len(l.Contenders) - len(l.Holders()) }

// Taken returns how many leases of a semaphore the holders have.
func (l *Lock) Taken() int {
	n := 0
	for _, c := range l.Holders() {
		n = sum(n, c.Leases)
	}
	return n
}

// sum adds up to math.MaxInt, which the numbers in the names of nodes can exceed if an int has 32 bits.
func sum(a, b int) int { return a + min(b, math.MaxInt-a) }

// Idle reports whether the directory can be that of a lock that nobody uses.
func (l *Lock) Idle() bool {
	if len(l.Contenders) > 0 {
		return false
	}
	switch l.Kind {
	case Semaphore, Curator, Kazoo:
		return true
	}
	return l.deserted()
}

// deserted reports whether the directory is empty, and had children before. Servers remove those that are
// containers after a while. They do not tell which ones are.
func (l *Lock) deserted() bool {
	return len(l.Contenders)+len(l.Others) == 0 && l.Stat.EphemeralOwner == 0 && l.Stat.Cversion > 0
}

// build makes contenders of nodes in dir.
func build(kind Kind, dir string, nodes []queue.Node, limit int) []Contender {
	holds := holders(kind, nodes, limit)
	out := make([]Contender, len(nodes))
	for i, n := range nodes {
		out[i] = Contender{
			Node: n.Name, Path: path.Join(dir, n.Name), Sequence: n.Sequence,
			Holds: holds[i], Mode: modeOf(kind, n),
		}
		switch kind {
		case Semaphore, Curator, Kazoo:
			out[i].Leases = n.Weight
		}
	}
	return out
}

// readLimit takes the limit from the data of the directory. Data that is not a semaphore's leaves it 0.
func (l *Lock) readLimit(data []byte) {
	limit, ours := parseLimit(data)
	if !ours {
		return
	}
	l.Limit, l.LimitSet = limit.MaxLeases, !limit.Default
}

// Directories returns the directories of the contenders: if there are two, that of the leases, and that of the waiters.
func (l *Lock) Directories() []string {
	switch l.Kind {
	case Curator:
		return []string{path.Join(l.Path, curatorLeases), path.Join(l.Path, curatorLocks)}
	case Kazoo:
		return []string{l.Path, l.Path + kazooGate}
	}
	return []string{l.Path}
}
