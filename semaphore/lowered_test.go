package semaphore_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// slow is a contender behind a proxy, which can cut its network.
type slow struct {
	*call
	proxy    *zktest.Proxy
	watching chan string // gets a node ahead, at the beginning of each wait
}

// slowly begins an AcquireN and returns when it waits for another contender. No request is under way then. A reply that a
// cut holds back could otherwise let it in by a limit of the past.
func slowly(t *testing.T, dir string, limit, n int) *slow {
	t.Helper()
	s := &slow{proxy: testserver.Proxy(t), watching: make(chan string, 100)}
	m := testserver.Connect(t, s.proxy.Addr(), session.WithTimeout(long), session.WithTrace(session.Trace{
		Watch: func(ctx context.Context, w session.WatchInfo) (context.Context, func(error)) {
			s.watching <- w.Path
			return ctx, nil
		},
	}))
	s.call = begin(t, newSem(t, m, dir, limit), n)
	receive(t, "the first wait", s.watching)
	return s
}

// waitsFor returns when the contender has asked for the node of a holder, which it does before it waits for it.
func (s *slow) waitsFor(t *testing.T, l *queue.Lease) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "it waits for "+l.Path(), func() bool {
		select {
		case <-s.done:
			t.Fatalf("AcquireN returned (%v), though it has to wait for %s", s.err, l.Path())
		default:
		}
		return s.proxy.Count(zktest.On(zktest.OpGetData, l.Path())) > 0
	})
}

// A holds a lease, B and C wait, and B's network is cut. C is let in by a higher limit. When the limit is lower again, B
// must not be let in beside A and C, although its place is before C's.
func TestLoweredWhileOneIsSlow(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 1)
	a := take(t, s, 1)
	b := slowly(t, dir, 1, 1)
	c := enter(t, newSem(t, connect(t), dir, 1), 1)
	b.proxy.Blackhole(zktest.ToClient)
	must(t, s.Resize(ctx, 3))
	inC := c.get(t)
	must(t, s.Resize(ctx, 2))
	b.proxy.Heal()
	b.waitsFor(t, inC)
	b.waits(t, "two are held of two")
	late := enter(t, newSem(t, connect(t), dir, 1), 1)
	release(t, a)
	inB := b.get(t)
	must(t, inC.Err())
	late.waits(t, "two are held of two")
	release(t, inC)
	release(t, inB, late.get(t))
}

// A holds all leases, and B, C and D wait. B's connection is lost, but not its session. C and D are let in when A leaves.
// If the limit is one by then, B must not be let in beside them.
func TestLoweredWhileOneIsAway(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 3)
	a := take(t, s, 3)
	b := slowly(t, dir, 3, 1)
	c := enter(t, newSem(t, connect(t), dir, 3), 1)
	d := enter(t, newSem(t, connect(t), dir, 3), 1)
	b.proxy.Refuse(true)
	b.proxy.Disconnect()
	release(t, a)
	inC, inD := c.get(t), d.get(t)
	must(t, s.Resize(ctx, 1))
	b.proxy.Refuse(false)
	b.waitsFor(t, inD)
	b.waits(t, "two are held of one")
	release(t, inC)
	b.waits(t, "one is held of one")
	release(t, inD)
	release(t, b.get(t))
}

// No contender was let in by the higher limit, but each waiter must assume that those behind it were. All of them are let in
// all the same, in order, as many at a time as there are leases.
func TestLoweredWhileAllAreSlow(t *testing.T) {
	const waiters = 6
	ctx := patient(t)
	for _, low := range []int{1, 2} {
		t.Run(fmt.Sprint(low), func(t *testing.T) {
			dir := testserver.Path(t)
			s := newSem(t, connect(t), dir, 1)
			held := take(t, s, 1)
			var calls []*slow
			for range waiters {
				calls = append(calls, slowly(t, dir, 1, 1))
			}
			for _, c := range calls {
				c.proxy.Blackhole(zktest.ToClient)
			}
			must(t, s.Resize(ctx, 9))
			must(t, s.Resize(ctx, low))
			release(t, held)
			for _, c := range slices.Backward(calls) {
				c.proxy.Heal() // the last one learns of it first
			}
			var in []*queue.Lease
			for i, c := range calls {
				in = append(in, c.get(t))
				if i+1 < waiters && len(in) == low {
					calls[i+1].waits(t, "no lease is free")
				}
				if len(in) == low {
					release(t, in[0])
					in = in[1:]
				}
			}
			release(t, in...)
			waitContenders(t, dir, 0)
		})
	}
}

// The session has no room for a second node. The contender goes to the end of the queue, and is let in in the end.
func TestLoweredWithoutRoom(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 2)
	a, b := take(t, s, 1), take(t, s, 1)
	c := enter(t, newSem(t, connect(t, session.WithMaxNodes(1)), dir, 2), 1)
	must(t, s.Resize(ctx, 1))
	release(t, a)
	c.waits(t, "one is held of one")
	release(t, b)
	release(t, c.get(t))
	waitContenders(t, dir, 0)
}

// A contender whose connection is lost while it renews its place keeps the place, and leaves no second node behind.
func TestLoweredInDoubt(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(*zktest.Proxy, zktest.Match) *zktest.Fault
	}{
		{"the request is lost", (*zktest.Proxy).CutBefore},
		{"the reply is lost", (*zktest.Proxy).CutAfterCommit},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := patient(t)
			dir := testserver.Path(t)
			s := newSem(t, connect(t), dir, 2)
			a, b := take(t, s, 1), take(t, s, 1)
			first := slowly(t, dir, 2, 1)
			second := enter(t, newSem(t, connect(t), dir, 2), 1)
			fault := c.fault(first.proxy, zktest.On(zktest.OpMulti, dir+"/"))
			must(t, s.Resize(ctx, 1))
			release(t, a)
			receive(t, "the fault", fault.Hit())
			release(t, b)
			l := first.get(t)
			second.waits(t, "one is held of one")
			waitContenders(t, dir, 2)
			release(t, l)
			release(t, second.get(t))
			waitContenders(t, dir, 0)
		})
	}
}

// A contender that is cancelled while it renews its place leaves nothing behind.
func TestLoweredAndCancelled(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 2)
	a, b := take(t, s, 1), take(t, s, 1)
	c := slowly(t, dir, 2, 1)
	held := c.proxy.HoldReply(zktest.On(zktest.OpMulti, dir+"/"))
	must(t, s.Resize(ctx, 1))
	release(t, a)
	receive(t, "the renewal", held.Hit())
	c.cancel()
	wantErr(t, "Acquire", c.fail(t), context.Canceled)
	held.Release()
	waitContenders(t, dir, 1)
	release(t, b)
}

// The user's backoff calls runtime.Goexit when a contender is about to renew its place. It does so in the third round of
// the contender's loop, since its first two nodes were deleted. The contender goes on, and gets its lease when its
// turn comes.
func TestLoweredBackOffEnds(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 2)
	a, b := take(t, s, 1), take(t, s, 1)
	armed, asked := new(atomic.Bool), make(chan struct{})
	m := testserver.Connect(t, testserver.Server(t).ConnectString(), session.WithRetry(func() backoff.BackOff {
		if armed.CompareAndSwap(true, false) {
			close(asked)
			runtime.Goexit()
		}
		return backoff.NewConstantBackOff(time.Millisecond)
	}))
	c := enter(t, newSem(t, m, dir, 2), 1)
	for range 2 {
		deleteNewest(t, dir)
	}
	armed.Store(true)
	must(t, s.Resize(ctx, 1))
	release(t, a)
	receive(t, "a wait of the contender's loop", asked)
	waitContenders(t, dir, 2)
	release(t, b)
	release(t, c.get(t))
	waitContenders(t, dir, 0)
}

// deleteNewest deletes the node of the contender that came last, and returns when that has a new node.
func deleteNewest(t *testing.T, dir string) {
	t.Helper()
	newest := func() queue.Node {
		var last queue.Node
		for _, name := range testserver.Children(t, dir) {
			if n, ok := queue.ParseNode(name); ok && n.Sequence >= last.Sequence {
				last = n
			}
		}
		return last
	}
	was := newest()
	testserver.Delete(t, dir, was.Name)
	zktest.Eventually(t, testserver.Patience, "the contender comes again", func() bool { return newest().Sequence > was.Sequence })
}

// X waits and has not heard of the lower limit. Y comes behind X after the limit was lowered. When X renews its place, its
// old node goes. That is no turn for Y.
func TestLoweredBeforeAnotherCame(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 2)
	a := take(t, s, 2)
	x := slowly(t, dir, 2, 1)
	x.proxy.Blackhole(zktest.ToClient)
	must(t, s.Resize(ctx, 1))
	y := slowly(t, dir, 2, 1)
	release(t, a)
	x.proxy.Heal()
	l := x.get(t)
	y.waitsFor(t, l)
	y.waits(t, "one is held of one")
	release(t, l)
	release(t, y.get(t))
}

// W, between X and N, renews its place, and has not got the reply yet. X must count W once. Otherwise X
// would conclude that N cannot have been let in, and would go beside it.
func TestLoweredWhileAnotherRenews(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 2)
	h := take(t, s, 1)
	x := slowly(t, dir, 2, 2)
	w := slowly(t, dir, 2, 2)
	n := enter(t, newSem(t, connect(t), dir, 2), 2)
	x.proxy.Blackhole(zktest.ToClient)
	w.proxy.Blackhole(zktest.ToClient)
	must(t, s.Resize(ctx, 7)) // N: 1+2+2 ahead of it, and 2 for itself
	inN := n.get(t)
	must(t, s.Resize(ctx, 2))
	held := w.proxy.HoldReply(zktest.On(zktest.OpMulti, dir+"/"))
	release(t, h)
	w.proxy.Heal()
	receive(t, "the renewal of W", held.Hit())
	waitContenders(t, dir, 3)
	x.proxy.Heal()
	x.waitsFor(t, inN)
	must(t, inN.Err())
	x.waits(t, "two are held of two")
	held.Release()
	release(t, inN)
	release(t, x.get(t))
	release(t, w.get(t))
}

// lowerBehindBack lets N in by limit 3. X is ahead of N, and its network is cut. lower then sets the limit to 1. X must not
// be let in while N holds its lease.
func lowerBehindBack(t *testing.T, dir string, lower func()) {
	s := newSem(t, connect(t), dir, 3)
	h := take(t, s, 3)
	x := slowly(t, dir, 3, 1)
	n := enter(t, newSem(t, connect(t), dir, 3), 1)
	x.proxy.Refuse(true)
	x.proxy.Disconnect()
	release(t, h)
	inN := n.get(t)
	lower()
	x.proxy.Refuse(false)
	x.waitsFor(t, inN)
	x.waits(t, "one is held of one")
	release(t, inN)
	release(t, x.get(t))
}

// An operator has created the directory with its limit, and lowers it by hand. The data has version 1.
func TestHandMadeThenHandSet(t *testing.T) {
	dir := testserver.Path(t)
	persistent(t, dir, `{"maxLeases":3}`)
	lowerBehindBack(t, dir, func() {
		_, err := testserver.Admin(t).Set(dir, []byte(`{"maxLeases":1}`), -1)
		must(t, err)
	})
}

// An operator removes the data, and Resize follows.
func TestHandEmptiedThenResize(t *testing.T) {
	dir := testserver.Path(t)
	lowerBehindBack(t, dir, func() {
		_, err := testserver.Admin(t).Set(dir, nil, -1)
		must(t, err)
		must(t, newSem(t, connect(t), dir, 3).Resize(patient(t), 1))
	})
}

// An operator edits the number in the data of Resize.
func TestHandEdited(t *testing.T) {
	dir := testserver.Path(t)
	must(t, newSem(t, connect(t), dir, 3).Resize(patient(t), 3))
	lowerBehindBack(t, dir, func() {
		old := dataOf(t, dir)
		_, err := testserver.Admin(t).Set(dir, []byte(strings.Replace(old, `"maxLeases":3`, `"maxLeases":1`, 1)), -1)
		must(t, err)
	})
}

// X renews its place. Y came before that, but holds the lease after X. So its token is lower.
func TestTokenAfterRenewal(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 2)
	a := take(t, s, 2)
	x := enter(t, newSem(t, connect(t), dir, 2), 1)
	must(t, s.Resize(ctx, 1))
	y := enter(t, newSem(t, connect(t), dir, 2), 1)
	release(t, a)
	inX := x.get(t)
	tokenX, err := inX.Token(ctx)
	must(t, err)
	release(t, inX)
	inY := y.get(t)
	tokenY, err := inY.Token(ctx)
	must(t, err)
	if tokenY <= tokenX {
		t.Errorf("limit 1: the first holder's token is %#x, the second's %#x", tokenX, tokenY)
	}
}

// A Resize comes between the read and the write of a ResetLimit. The call that writes last counts as a whole: either the
// limit is New's and the directory may go, or neither.
func TestResizeWhileResetLimit(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	persistent(t, dir, "")
	s := newSem(t, connect(t), dir, 2)
	must(t, s.Resize(ctx, 3))
	proxy := testserver.Proxy(t)
	other := newSem(t, behind(t, proxy), dir, 2)
	held := proxy.HoldRequest(func(r zktest.Request) bool { return r.Op == zktest.OpMulti })
	done := make(chan error, 1)
	go func() { done <- other.ResetLimit(ctx) }()
	receive(t, "the transaction of ResetLimit", held.Hit())
	must(t, s.Resize(ctx, 5))
	wantLimit(t, s, 5)
	held.Release()
	must(t, receive(t, "ResetLimit", done))
	wantLimit(t, s, 2)
	testserver.WaitChildren(t, dir, 0)
}

// The reply to a renewal is lost. The session then counts the new node, and no longer the old one (WithMaxNodes).
func TestLoweredInDoubtLeavesRoom(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 2)
	a, b := take(t, s, 1), take(t, s, 1)
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(long), session.WithMaxNodes(2))
	c := enter(t, newSem(t, m, dir, 2), 1)
	fault := proxy.CutAfterCommit(zktest.On(zktest.OpMulti, dir+"/"))
	must(t, s.Resize(ctx, 1))
	release(t, a)
	receive(t, "the fault", fault.Hit())
	release(t, b)
	release(t, c.get(t))
	on, err := m.Session(ctx)
	must(t, err)
	_, err = on.Create(ctx, testserver.Path(t), nil, session.Ephemeral)
	must(t, err)
	zktest.Eventually(t, testserver.Patience, "room for a second node", func() bool {
		_, err := on.Create(patient(t), testserver.Path(t), nil, session.Ephemeral)
		return err == nil
	})
}

// A waiter whose session has room for one node keeps its place when the limit is lowered: one transaction deletes its node
// and creates another.
func TestLoweredAtLimitOfNodes(t *testing.T) {
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 2)
	held := []*queue.Lease{take(t, s, 1), take(t, s, 1)}
	first := enter(t, newSem(t, testserver.Connect(t, testserver.Server(t).Addr(0), session.WithMaxNodes(1)), dir, 2), 1)
	second := enter(t, newSem(t, connect(t), dir, 2), 1)
	must(t, s.Resize(patient(t), 1))
	release(t, held...)
	l := first.get(t)
	second.waits(t, "the first holds the only lease")
	release(t, l)
	release(t, second.get(t))
}
