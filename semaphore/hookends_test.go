package semaphore_test

import (
	"context"
	"path"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// G waits for two leases and renews its place. While its request is on the way, an operator deletes its
// node. So only H and T stand before N, and N is let in. Then the limit is lowered once more, and only
// then the request arrives. It must not make a new node for G: T, ahead of both, would count it, and
// conclude that N cannot have been let in.
func TestPlaceThatComesBack(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 4)
	h, h2 := take(t, s, 1), take(t, s, 3)
	x := slowly(t, dir, 4, 1)
	g := slowly(t, dir, 4, 2)
	n := enter(t, newSem(t, connect(t), dir, 4), 1)
	x.proxy.Blackhole(zktest.ToClient)
	first := newestButOne(t, dir)

	must(t, s.Resize(ctx, 3))
	create := g.proxy.HoldRequest(zktest.Any(zktest.OpMulti, zktest.OpCreate))
	made := g.proxy.HoldReply(zktest.Any(zktest.OpMulti, zktest.OpCreate))
	release(t, h2)
	receive(t, "the renewal of G", create.Hit())
	testserver.Delete(t, first)
	inN := n.get(t) // with H: two of three
	must(t, s.Resize(ctx, 2))
	create.Release()
	receive(t, "the reply to the renewal of G", made.Hit())

	x.proxy.Heal()
	x.waitsFor(t, inN)
	x.waits(t, "two are held of two")
	made.Release()
	release(t, h)
	release(t, x.get(t), inN)
	release(t, g.get(t))
}

// newestButOne returns the path of the last contender but one.
func newestButOne(t *testing.T, dir string) string {
	t.Helper()
	var last, before queue.Node
	for _, name := range testserver.Children(t, dir) {
		n, ok := queue.ParseNode(name)
		switch {
		case !ok:
		case last.Name == "" || n.Sequence > last.Sequence:
			last, before = n, last
		case before.Name == "" || n.Sequence > before.Sequence:
			before = n
		}
	}
	return path.Join(dir, before.Name)
}

// A hook ends its goroutine while B asks for the age of a node behind it. B gets the answer, and must not conclude that the
// node is gone.
func TestLoweredHookEndsTheQuestion(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 1)
	a := take(t, s, 1)
	var behind atomic.Value // the node of C
	behind.Store("-")
	asked, waiting := make(chan struct{}, 100), make(chan struct{}, 100)
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(long), session.WithTrace(session.Trace{
		Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
			waiting <- struct{}{}
			return ctx, nil
		},
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if r.Op == "exists" && strings.HasSuffix(r.Path, behind.Load().(string)) {
				asked <- struct{}{}
				runtime.Goexit()
			}
			return ctx, nil
		},
	}))
	b := begin(t, newSem(t, m, dir, 1), 1)
	receive(t, "the wait of B", waiting)
	c := enter(t, newSem(t, connect(t), dir, 1), 1)
	proxy.Blackhole(zktest.ToClient)
	must(t, s.Resize(ctx, 3))
	inC := c.get(t)
	behind.Store(inC.Path())
	must(t, s.Resize(ctx, 2))
	proxy.Heal()
	receive(t, "the question", asked)
	select {
	case <-b.done:
		if b.err == nil {
			must(t, a.Err())
			must(t, inC.Err())
			t.Error("B was let in beside A and C: three leases are held of two")
			release(t, b.lease)
		}
	default:
	}
	b.cancel()
	<-b.done
	if b.err == nil && b.lease.Err() == nil {
		t.Error("B was let in beside A and C: three leases are held of two")
		release(t, b.lease)
	}
	release(t, a, inC)
}

// The gate's node is deleted just when the lease is granted, and the hook for releases always panics. The lease is held, and
// nothing else is left behind.
func TestCuratorHookPanicsAtLostGate(t *testing.T) {
	dir := testserver.Path(t)
	directories(t, dir)
	lost := make(chan struct{}, 10)
	var struck atomic.Int64
	m := connect(t, session.WithTrace(session.Trace{
		Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			return ctx, func(session.AcquireResult) {
				if a.Kind == "semaphore" {
					testserver.Delete(t, dir, "locks", oldest(t, dir+"/locks"))
					<-lost
				}
			}
		},
		Loss: func(context.Context, session.HoldInfo, error) { lost <- struct{}{} },
		Release: func(context.Context, context.Context, session.HoldInfo) (context.Context, func(error)) {
			struck.Add(1)
			panic("a hook")
		},
	}))
	l := take(t, newSem(t, m, dir, 1, semaphore.WithCuratorLayout()), 1)
	if struck.Load() != 1 {
		t.Errorf("%d calls of the Release hook, want one for the gate", struck.Load())
	}
	nodes(t, dir, 1, 0)
	release(t, l)
	nodes(t, dir, 0, 0)
}
