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
	"github.com/turnstile-go/turnstile/kinds"
)

// An unfair lock has no queue. A contender enters as that of a mutex does, and if it is not the first, it leaves at once. Then
// it waits without a node, until nobody is there, and enters again. So the quickest contender gets the lock. All that is true
// of a mutex is true of it: a node has its own name, and the first node holds.
//
// The contenders of one Queue take turns at that, so a process adds one to those that enter at once.

// errTaken says that an attempt for an unfair lock was not the first. It leaves.
var errTaken = errors.New("taken")

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
		return nil, because(err, "behind another goroutine of this process")
	}
	return func() { one.Release(1) }, nil
}

// standAside waits until nobody has the lock, or is about to leave. So the first that enters after that has nobody ahead.
func (a *attempt) standAside(ctx context.Context) (err error) {
	pace, end := a.q.newPace(), endNothing
	defer func() { end(err) }()
	for within := ctx; ; {
		first, w, err := a.q.watchFirst(within, a.r.Kind)
		switch {
		case err == nil && w == nil, errors.Is(err, zk.ErrNoNode):
			return nil
		case err != nil && !isPassing(err):
			return err
		case w != nil:
			a.view = &view{me: &first, targets: []blocker{{node: first}}, watches: []*core.Watch{w}, head: 1, unfair: true, session: a.s.ID()}
			a.warn()
			end(nil)
			within, end = traceWatch(ctx, a.q.hooks(), hooks.WatchInfo{
				Chroot: a.q.m.Chroot(), Path: path.Join(a.q.dir, first.Name), Nodes: 1, Ahead: 1, Known: knownOf(w),
			})
			began := time.Now()
			awaitEnd(ctx, w, a.s.Timeout())
			pace.Rested(time.Since(began))
		}
		if err := pace.Wait(ctx, nil); err != nil {
			return err
		}
	}
}

// watchFirst watches the first contender. It returns no watch if there is none.
func (q *Queue) watchFirst(ctx context.Context, kind *kinds.Kind) (kinds.Node, *core.Watch, error) {
	s, err := q.m.Session(ctx)
	if err != nil {
		return kinds.Node{}, nil, err
	}
	nodes, _, err := q.listed(ctx, s, kind)
	if err != nil || len(nodes) == 0 {
		return kinds.Node{}, nil, err
	}
	_, _, w, err := s.Watch(ctx, path.Join(q.dir, nodes[0].Name))
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
