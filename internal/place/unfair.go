package place

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/semaphore"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/kinds"
)

// An unfair lock has no queue. A contender enters as that of a mutex does, and if it is not the first, it leaves at
// once. Then it waits without a node until the first is gone, and enters again. So the quickest contender gets the
// lock. All that is true of a mutex is true of it: a node has its own name, and the first node holds.
//
// The first node may be that of a contender which is about to leave, and others of that kind may be behind it. They go
// within about a round trip. If contenders entered whenever one of these is gone, they could keep each other out for
// ever. So a contender enters at once only if the first node has stood for longer: it was the holder's, and the others
// have gone since. Otherwise it enters when it has seen that nobody is there. To list each time would be too slow: the
// process that has released the lock can enter again a round trip later, and would always be ahead.
//
// The contenders of one Queue take turns at that, so a process adds one to those that enter at once.

// inTurn waits for the turn of a contender for an unfair lock among those of its Queue. With try it fails with ErrBusy
// in place of that. The caller calls next in the end.
func (q *Queue) inTurn(ctx context.Context, try bool) (next func(), err error) {
	one := q.unfair.Load()
	if one == nil {
		q.unfair.CompareAndSwap(nil, semaphore.NewWeighted(1))
		one = q.unfair.Load()
	}
	if one.TryAcquire(1) {
		return func() { one.Release(1) }, nil
	}
	if try {
		return nil, ErrBusy
	}
	if err := one.Acquire(ctx, 1); err != nil {
		return nil, &kinds.WaitError{Err: err, Reason: "behind another goroutine of this process"}
	}
	return func() { one.Release(1) }, nil
}

// standAside waits until the holder is gone, or until nobody is there.
func (a *attempt) standAside(ctx context.Context) (err error) {
	pace, end := a.q.newPace(), endNothing
	defer func() { end(err) }()
	for within := ctx; ; {
		first, w, err := a.watchFirst(within)
		switch {
		case err == nil && w == nil, errors.Is(err, zk.ErrNoNode):
			return nil
		case err != nil && !isPassing(err):
			return err
		case w != nil:
			a.view = &view{
				dir: a.q.dir, me: &first, targets: []decide.Blocker{{Node: first}}, watches: []*core.Watch{w},
				head: 1, unfair: true, session: a.s.ID(),
			}
			a.warn()
			end(nil)
			within, end = traceWatch(ctx, a.q.hooks(), hooks.WatchInfo{
				Chroot: a.q.m.Chroot(), Path: path.Join(a.q.dir, first.Name), Nodes: 1, Ahead: 1, Known: knownOf(w),
				Holds: func() bool { return true },
			})
			began := time.Now()
			awaitEnd(ctx, w, a.s.Timeout())
			stood := time.Since(began)
			if w.Event() == core.WatchDeleted && stood > a.entering {
				return nil
			}
			pace.Rested(stood)
		}
		if err := pace.Wait(ctx, nil); err != nil {
			return err
		}
	}
}

// watchFirst watches the first contender: by the listing with which the attempt has entered, and after that by a new
// one. It returns no watch if there is none.
func (a *attempt) watchFirst(ctx context.Context) (kinds.Node, *core.Watch, error) {
	s, err := a.q.m.Session(ctx)
	if err != nil {
		return kinds.Node{}, nil, err
	}
	nodes := decide.ParseNodes(a.names, a.r.Kind.Prefixes...)
	if a.names = nil; len(nodes) == 0 || s != a.s {
		nodes, _, err = a.q.listed(ctx, s, a.r.Kind)
	}
	if err != nil || len(nodes) == 0 {
		return kinds.Node{}, nil, err
	}
	_, _, w, err := s.Watch(ctx, path.Join(a.q.dir, nodes[0].Name))
	if errors.Is(err, zk.ErrNoNode) {
		err = errMoved
	}
	return nodes[0], w, err
}

// awaitEnd waits until a watch has ended, but not for longer than limit: a wake-up may be lost.
func awaitEnd(ctx context.Context, w *core.Watch, limit time.Duration) {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-w.Done():
	case <-late.C:
	case <-ctx.Done():
	}
}
