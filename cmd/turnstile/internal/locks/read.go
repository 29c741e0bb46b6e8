package locks

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/queue"
)

// Lock is a directory of contenders.
type Lock struct {
	Path       string
	Kind       Kind
	Limit      int         // leases of a semaphore; 0: not known
	LimitSet   bool        // an operator has set the limit
	Contenders []Contender // in order
	Others     []string    // children that are no contenders, sorted
	Stat       *zk.Stat    // of the directory
}

// Holders returns the contenders that hold the lock.
func (l *Lock) Holders() []Contender {
	return slices.DeleteFunc(slices.Clone(l.Contenders), func(c Contender) bool { return !c.Holds })
}

// Waiting returns how many contenders wait.
func (l *Lock) Waiting() int { return len(l.Contenders) - len(l.Holders()) }

// Taken returns how many leases of a semaphore the holders have.
func (l *Lock) Taken() (n int) {
	for _, c := range l.Holders() {
		n += min(c.Leases, math.MaxInt-n)
	}
	return n
}

// Directories returns the directories of the contenders: if there are two, that of the leases, and that of the waiters.
func (l *Lock) Directories() []string {
	if l.Kind == Curator {
		return []string{path.Join(l.Path, curatorLeases), path.Join(l.Path, curatorLocks)}
	}
	return []string{l.Path}
}

// Detail says which contenders' nodes to read.
type Detail int

// The details.
const (
	Holders Detail = iota // the first holders, as many as a line can name
	All
)

const (
	fewHolders = 4  // are read for a list of locks
	parallel   = 32 // requests are in flight at once
)

// Read reads the lock at a path: one request, and one for each contender that the detail asks for; two
// more in Curator's layout, and one more for a semaphore. It fails with zk.ErrNoNode if there is no node, ctx's
// error, [ErrUnreachable], session.ErrClosed, or what the server refuses.
func (t *Tree) Read(ctx context.Context, dir string, detail Detail) (*Lock, error) {
	return t.Update(ctx, &Lock{Path: dir}, detail)
}

// Update reads a lock again. It does not read the nodes of waiters again that it knows from the reading before.
func (t *Tree) Update(ctx context.Context, before *Lock, detail Detail) (*Lock, error) {
	dir := before.Path
	names, stat, err := t.Children(ctx, dir)
	if err != nil {
		return nil, err
	}
	nodes, others := split(names)
	l := &Lock{Path: dir, Kind: classify(nodes, others), Others: others, Stat: stat}
	if l.Kind == None && slices.Contains(others, curatorLeases) {
		if l.Kind, err = t.kindByLeases(ctx, dir); err != nil {
			return nil, err
		}
	}
	if err := t.readLimit(ctx, l); err != nil {
		return nil, err
	}
	if l.Kind == Curator {
		return l, t.readCurator(ctx, l)
	}
	l.Contenders = build(l.Kind, dir, nodes, l.Limit)
	known := make(map[string]Contender, len(before.Contenders))
	for _, c := range before.Contenders {
		if c.Known && !c.Holds {
			known[c.Path] = c
		}
	}
	for i, c := range l.Contenders {
		if k, ok := known[c.Path]; ok && !c.Holds {
			l.Contenders[i] = k
		}
	}
	return l, t.describe(ctx, l, detail)
}

// build makes contenders of nodes in dir.
func build(kind Kind, dir string, nodes []queue.Node, limit int) []Contender {
	holds := holders(kind, nodes, limit)
	out := make([]Contender, len(nodes))
	for i, n := range nodes {
		out[i] = Contender{Node: n.Name, Path: path.Join(dir, n.Name), Sequence: n.Sequence, Holds: holds[i]}
		switch {
		case kind == Semaphore || kind == Curator:
			out[i].Leases = n.Weight
		case kind == RWLock && (n.Prefix == queue.PrefixWrite || n.Prefix == queue.PrefixKazooLock):
			out[i].Mode = "write"
		case kind == RWLock:
			out[i].Mode = "read"
		}
	}
	return out
}

// readLimit reads the limit of a semaphore, which is in the data of its directory. A directory whose limit was set stays when
// nobody contends, and others stay for a moment.
func (t *Tree) readLimit(ctx context.Context, l *Lock) error {
	unused := l.Kind == None && (slices.Contains(l.Others, limitPin) || len(l.Others) == 0 && l.Stat.Cversion > 0)
	if l.Kind != Semaphore && !unused || l.Stat.DataLength == 0 {
		return nil
	}
	data, _, err := t.Get(ctx, l.Path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	var said struct {
		MaxLeases int  `json:"maxLeases"`
		Default   bool `json:"default"` // the limit is the one that New was given
	}
	if err != nil || json.Unmarshal(data, &said) != nil || said.MaxLeases < 1 || said.MaxLeases > math.MaxInt32 {
		return err
	}
	l.Kind, l.Limit, l.LimitSet = Semaphore, said.MaxLeases, !said.Default
	return nil
}

// kindByLeases returns Curator if the directory of leases below dir is that of a semaphore in Curator's
// layout, and otherwise None. While leases are held and nobody asks for more, the servers remove the empty
// directory of the gate. A semaphore of this library at the path of the leases has its limit there.
func (t *Tree) kindByLeases(ctx context.Context, dir string) (Kind, error) {
	leases := &Lock{Path: path.Join(dir, curatorLeases)}
	names, stat, err := t.Children(ctx, leases.Path)
	if err == nil {
		nodes, others := split(names)
		leases.Kind, leases.Stat = classify(nodes, others), stat
		err = t.readLimit(ctx, leases)
	}
	switch {
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNoAuth):
		return None, nil // a walk comes to that directory by itself, and says so
	case err == nil && leases.Kind == Semaphore && leases.Limit == 0:
		return Curator, nil
	}
	return None, err
}

// readCurator reads a semaphore in Curator's layout, whose limit is not on the servers. Contenders wait for a gate, a mutex in a
// directory of its own, and make a lease while they have it.
func (t *Tree) readCurator(ctx context.Context, l *Lock) error {
	for i, dir := range l.Directories() {
		names, _, err := t.Children(ctx, dir)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		nodes, _ := split(names)
		kind := Curator
		if i > 0 {
			kind = Mutex
		}
		for _, c := range build(kind, dir, nodes, 0) {
			if c.Holds = i == 0; !c.Holds {
				c.Leases = 1
			}
			l.Contenders = append(l.Contenders, c)
		}
	}
	if err := t.describe(ctx, l, All); err != nil {
		return err
	}
	// A contender that has the gate may have made a lease that does not fit yet, and waits. The sessions tell which lease it
	// is: the contender is shown once.
	head := slices.IndexFunc(l.Contenders, func(c Contender) bool { return !c.Holds })
	for i := 0; i < head; i++ {
		gate, lease := l.Contenders[head], l.Contenders[i]
		if gate.Owner != 0 && lease.Owner == gate.Owner && lease.Token > gate.Token {
			lease.Holds = false
			l.Contenders[head] = lease
			l.Contenders = slices.Delete(l.Contenders, i, i+1)
			break
		}
	}
	return nil
}

// describe reads the nodes of contenders, and drops those that are gone. If other contenders hold the lock
// after that, it reads their nodes too, but does not follow a lock for ever.
func (t *Tree) describe(ctx context.Context, l *Lock, detail Detail) error {
	tried := make(map[string]bool, len(l.Contenders)) // a node that this identity may not read stays unknown
	const mostRounds = 16
	for range mostRounds {
		gone := make([]bool, len(l.Contenders))
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(parallel)
		few := fewHolders
		for i := range l.Contenders {
			c := &l.Contenders[i]
			if detail == Holders {
				if c.Holds {
					few--
				}
				if !c.Holds || few < 0 {
					continue
				}
			}
			if c.Known || tried[c.Path] {
				continue
			}
			tried[c.Path] = true
			g.Go(func() error {
				data, stat, err := t.Get(ctx, c.Path)
				switch {
				case errors.Is(err, zk.ErrNoNode):
					gone[i] = true
					return nil
				case errors.Is(err, zk.ErrNoAuth):
					return nil // the rest of the queue can be shown
				case err == nil:
					c.describe(data, stat)
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if !slices.Contains(gone, true) {
			return nil
		}
		var kept []Contender
		var nodes []queue.Node
		for i, c := range l.Contenders {
			if !gone[i] {
				n, _ := parse(c.Node)
				kept, nodes = append(kept, c), append(nodes, n)
			}
		}
		l.Contenders = kept
		if l.Kind != Curator {
			for i, holds := range holders(l.Kind, nodes, l.Limit) {
				l.Contenders[i].Holds = holds
			}
		}
	}
	return nil
}
