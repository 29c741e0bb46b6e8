package locks

import (
	"cmp"
	"context"
	"errors"
	"math"
	"path"
	"slices"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
)

// The semaphores of Curator and kazoo have a gate: a mutex in a directory of its own. Contenders wait for it, and make a
// lease while they have it.

// readCurator reads a semaphore in Curator's layout, whose limit is not on the servers.
func (t *Tree) readCurator(ctx context.Context, l, before *Lock, detail Detail) error {
	var both [2][]queue.Node
	for i, dir := range l.Directories() {
		names, err := t.countChildren(ctx, l, dir)
		if err != nil {
			return err
		}
		both[i], _ = split(names)
	}
	return t.readGated(ctx, l, before, both[0], both[1], detail)
}

// countChildren lists a directory of contenders, and counts it. It returns nothing if the directory has gone since.
func (t *Tree) countChildren(ctx context.Context, l *Lock, dir string) ([]string, error) {
	names, stat, err := t.Children(ctx, dir)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, nil
	case err != nil:
		return nil, err
	}
	l.Count(stat)
	return names, nil
}

// kindByLimit makes l a semaphore of kazoo if it is one: the data of its directory is the limit. If the directory was there
// before the semaphore, it has other data, but the directory of the gate is beside it. Other recipes of kazoo, such as
// barriers, give their nodes the same names.
func (t *Tree) kindByLimit(ctx context.Context, l *Lock) error {
	data, stat, err := t.Get(ctx, l.Path)
	if err == nil {
		l.Written = stat.Mzxid
		if n, notNumber := strconv.ParseInt(string(data), 10, 32); notNumber == nil && n > 0 {
			l.Kind, l.Limit = Kazoo, int(n)
			return nil
		}
		if l.Path == "/" {
			return nil
		}
		if stat, err = t.Exists(ctx, l.Path+kazooGate); err == nil && stat != nil {
			l.Kind = Kazoo
		}
	}
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		return nil
	}
	return err
}

// readKazoo reads a semaphore of kazoo, whose leases are among the other children so far.
func (t *Tree) readKazoo(ctx context.Context, l, before *Lock, detail Detail) error {
	l.Count(l.Stat)
	var leases []queue.Node
	l.Others = slices.DeleteFunc(l.Others, func(name string) bool {
		lease := isKazooLease(name)
		if lease {
			leases = append(leases, queue.Node{Name: name, Weight: 1})
		}
		return lease
	})
	names, err := t.countChildren(ctx, l, l.Path+kazooGate)
	if err != nil && !errors.Is(err, zk.ErrNoAuth) {
		return err
	}
	gate, _ := split(names)
	return t.readGated(ctx, l, before, leases, gate, detail)
}

// readGated makes contenders of the leases and of the nodes at the gate.
func (t *Tree) readGated(ctx context.Context, l, before *Lock, leases, gate []queue.Node, detail Detail) error {
	dirs := l.Directories()
	l.Contenders = build(l.Kind, dirs[0], leases, 0)
	queued := build(Mutex, dirs[1], gate, 0)
	for i := range queued {
		queued[i].Holds = false
		queued[i].Leases = 1
	}
	l.Contenders = append(l.Contenders, queued...)
	l.recall(before)
	if len(queued) > 0 {
		detail = All
	}
	if err := t.describe(ctx, l, detail); err != nil {
		return err
	}
	if len(queued) > 0 {
		l.passGate(queued[0].Path)
	}
	slices.SortStableFunc(l.Contenders, func(a, b Contender) int {
		switch {
		case a.Holds && b.Holds && l.Kind == Kazoo: // names do not tell which one came first
			return cmp.Compare(firstToken(a), firstToken(b))
		case a.Holds == b.Holds:
			return 0
		case a.Holds:
			return -1
		}
		return 1
	})
	return nil
}

// firstToken is the token of a contender, or a very high one if it is not known.
func firstToken(c Contender) int64 {
	if c.Known {
		return c.Token
	}
	return math.MaxInt64
}

// passGate drops the node at the head of the gate, if its contender has made its lease. With Curator, a contender that has
// the gate may have made a lease that does not fit yet, and waits. With kazoo, it makes the lease when that fits. The sessions
// tell which lease it is.
func (l *Lock) passGate(head string) {
	first := slices.IndexFunc(l.Contenders, func(c Contender) bool { return c.Path == head })
	if first < 0 {
		return
	}
	for i, c := range l.Contenders[:first] {
		at := l.Contenders[first]
		if at.Owner != 0 && c.Owner == at.Owner && c.Token > at.Token && path.Dir(c.Path) != path.Dir(head) {
			l.Contenders[i].Holds = l.Kind == Kazoo
			l.Contenders = slices.Delete(l.Contenders, first, first+1)
			return
		}
	}
}

// withoutGates leaves out the gates of kazoo's semaphores that are among the locks: they are no locks of their own.
func withoutGates(all []*Lock) []*Lock {
	gates := map[string]bool{}
	for _, l := range all {
		if l.Kind == Kazoo {
			gates[l.Path+kazooGate] = true
		}
	}
	return slices.DeleteFunc(all, func(l *Lock) bool { return gates[l.Path] })
}
