package locks

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/queue"
)

// Detail says which contenders' nodes to read.
type Detail int

// The details.
const (
	Holders Detail = iota // the first holders, as many as a line can name
	All
)

// fewHolders is how many holders are read for a list of locks.
const fewHolders = 4

// parallel is how many requests are in flight at once.
const parallel = 32

// Read reads the lock at a path: one request, and one for each contender that the detail asks for; two
// more in Curator's layout, one more for a semaphore, and two more for a directory that has a child
// "leases" and none "locks", or children that can be kazoo's leases. It fails with zk.ErrNoNode if there is no node, ctx's
// error, [ErrUnreachable], session.ErrClosed, or what the server refuses.
func (t *Tree) Read(ctx context.Context, dir string, detail Detail) (*Lock, error) {
	return t.Update(ctx, &Lock{Path: dir}, detail)
}

// Update reads a lock again. It does not read nodes again that it knows from the reading before, if they
// have a uuid in their names.
func (t *Tree) Update(ctx context.Context, before *Lock, detail Detail) (*Lock, error) {
	dir := before.Path
	names, stat, err := t.Children(ctx, dir)
	if err != nil {
		return nil, err
	}
	nodes, others := split(names)
	l := &Lock{Path: dir, Kind: classify(nodes, others), Others: others, Stat: stat, Written: stat.Mzxid}
	switch {
	case l.Kind != None:
	case slices.Contains(others, curatorLeases):
		l.Kind, err = t.kindByLeases(ctx, dir)
	case slices.ContainsFunc(others, isKazooLease):
		err = t.kindByLimit(ctx, l)
	}
	switch {
	case err != nil:
		return nil, err
	case l.Kind == Curator:
		return l, t.readCurator(ctx, l, before, detail)
	case l.Kind == Kazoo:
		return l, t.readKazoo(ctx, l, before, detail)
	}
	l.Count(stat)
	if err := t.readLimit(ctx, l); err != nil {
		return nil, err
	}
	l.Contenders = build(l.Kind, dir, nodes, l.Limit)
	l.recall(before)
	return l, t.describe(ctx, l, detail)
}

// recall takes over what is known of contenders from an earlier reading.
func (l *Lock) recall(before *Lock) {
	if len(before.Contenders) == 0 {
		return
	}
	known := make(map[string]Contender, len(before.Contenders))
	for _, c := range before.Contenders {
		if c.Known && UniqueName(c.Node) {
			known[c.Path] = c
		}
	}
	for i, c := range l.Contenders {
		if k, ok := known[c.Path]; ok {
			k.Holds = c.Holds
			l.Contenders[i] = k
		}
	}
}

// Forget makes Update read the node of a contender again.
func (l *Lock) Forget(path string) {
	for i := range l.Contenders {
		if l.Contenders[i].Path == path {
			l.Contenders[i].Known = false
		}
	}
}

// readLimit reads the limit of a semaphore. A directory whose limit was set stays when nobody contends, and
// others stay for a moment.
func (t *Tree) readLimit(ctx context.Context, l *Lock) error {
	unused := l.Kind == None && (slices.Contains(l.Others, limitPin) || l.deserted())
	if l.Kind != Semaphore && !unused || l.Stat.DataLength == 0 {
		return nil
	}
	data, stat, err := t.Get(ctx, l.Path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	l.Written = stat.Mzxid
	if l.readLimit(data); unused && l.Limit > 0 {
		l.Kind = Semaphore
	}
	return nil
}

// kindByLeases returns Curator if the directory of leases below dir is that of a semaphore in Curator's
// layout, and otherwise None. While leases are held and nobody asks for more, the servers remove the empty
// directory of the gate. A semaphore of this library at the path of the leases has its limit there.
func (t *Tree) kindByLeases(ctx context.Context, dir string) (Kind, error) {
	names, _, err := t.Children(ctx, path.Join(dir, curatorLeases))
	if nodes, others := split(names); err == nil && classify(nodes, others) == Semaphore {
		var data []byte
		data, _, err = t.Get(ctx, path.Join(dir, curatorLeases))
		limit := new(Lock)
		if err == nil {
			limit.readLimit(data)
		}
		if err == nil && limit.Limit == 0 {
			return Curator, nil
		}
	}
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		err = nil // a walk comes to that directory by itself, and says so
	}
	return None, err
}

// mostRounds bounds how often describe reads the next holders, after those before have left.
const mostRounds = 16

// describe reads the nodes of contenders, and drops those that are gone. If other contenders hold the lock
// after that, it reads their nodes too.
func (t *Tree) describe(ctx context.Context, l *Lock, detail Detail) error {
	tried := make(map[string]bool, len(l.Contenders))
	for range mostRounds {
		unread := l.unread(detail, tried)
		if len(unread) == 0 {
			break
		}
		gone, err := t.readNodes(ctx, l, unread)
		if err != nil {
			return err
		}
		if !slices.Contains(gone, true) {
			break
		}
		l.drop(gone)
	}
	return nil
}

// unread returns which contenders' nodes to read for a detail, and notes that they were tried. A node that this
// identity may not read stays unknown, and is tried once.
func (l *Lock) unread(detail Detail, tried map[string]bool) []int {
	var out []int
	few := fewHolders
	for i, c := range l.Contenders {
		if detail == Holders {
			if !c.Holds {
				continue
			}
			if few--; few < 0 {
				break
			}
		}
		if !c.Known && !tried[c.Path] {
			tried[c.Path] = true
			out = append(out, i)
		}
	}
	return out
}

// readNodes reads the nodes of some contenders, and returns which ones are gone.
func (t *Tree) readNodes(ctx context.Context, l *Lock, which []int) (gone []bool, err error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	gone = make([]bool, len(l.Contenders))
	for _, i := range which {
		c := &l.Contenders[i]
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
	return gone, g.Wait()
}

// drop removes contenders that are gone, and decides anew which contenders hold the lock.
func (l *Lock) drop(gone []bool) {
	var kept []Contender
	var nodes []queue.Node
	for i, c := range l.Contenders {
		if !gone[i] {
			n, _ := parse(c.Node)
			kept, nodes = append(kept, c), append(nodes, n)
		}
	}
	l.Contenders = kept
	if l.Kind == Curator || l.Kind == Kazoo {
		return
	}
	for i, holds := range holders(l.Kind, nodes, l.Limit) {
		l.Contenders[i].Holds = holds
	}
}
