package hold

import (
	"context"
	"errors"
	"path"
	"testing"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Waiters get the lock in the order in which they came, each with its own lease, with one node and
// without a request.
func TestLocalOrder(t *testing.T) {
	longtest.Only(t)
	dir := testserver.Path(t)
	p := newProcess(t, dir, place.Request{}, 100)
	l := p.hold(t)
	token, node := tokenOf(t, l), l.Path()
	var all []*waits
	for i := range 5 {
		all = append(all, p.wait(t, i+1))
	}
	testserver.WaitChildren(t, dir, 1)
	p.proxy.ResetRequests()
	for _, w := range all {
		giveBack(t, l)
		next := w.lease(t)
		if next == l || !errors.Is(l.Err(), place.ErrReleased) || next.Err() != nil || next.Path() != node || tokenOf(t, next) != token {
			t.Fatalf("%s, %v; then %s, %v", l.Path(), l.Err(), next.Path(), next.Err())
		}
		if err := l.Release(expect.Patient(t), place.Done); !errors.Is(err, place.ErrReleased) || next.Err() != nil {
			t.Fatalf("released again: %v; the next: %v", err, next.Err())
		}
		l = next
	}
	if n := p.proxy.Count(func(r zktest.Request) bool { return r.Path == dir || path.Dir(r.Path) == dir }); n != 0 {
		t.Errorf("%d requests for 5 hand-overs", n)
	}
	giveBack(t, l)
	testserver.WaitChildren(t, dir, 0)
}

// After the last hand-over of a turn, other processes have their turn, and the waiters that remain are
// behind them. The token grows from turn to turn.
func TestLocalBound(t *testing.T) {
	dir := testserver.Path(t)
	p, q := newProcess(t, dir, place.Request{}, 1), newProcess(t, dir, place.Request{}, 1)
	first := p.hold(t)
	second, third := p.wait(t, 1), p.wait(t, 2)
	other := q.wait(t, 1)
	testserver.WaitChildren(t, dir, 2)
	giveBack(t, first)
	l := second.lease(t)
	// The third has its place before the node of the second is deleted. A contender that enters
	// after that is behind it.
	mine := tokenOf(t, l) // a lease that was released may not know it
	deletes := p.proxy.Count(zktest.On(zktest.OpDelete, dir))
	create := p.proxy.HoldRequest(zktest.On(zktest.OpCreate, dir))
	released := l.StartRelease(expect.Patient(t), place.Done)
	<-create.Hit()
	if p.proxy.Count(zktest.On(zktest.OpDelete, dir)) != deletes || !errors.Is(l.Err(), place.ErrReleased) {
		t.Errorf("its node is gone, or the lease is held still: %v", l.Err())
	}
	create.Release()
	expect.NoError(t, released.Wait())
	o := other.lease(t)
	testserver.WaitChildren(t, dir, 2)
	p.settle(t, 1)
	b := tokenOf(t, o)
	giveBack(t, o)
	last := third.lease(t)
	if c := tokenOf(t, last); mine >= b || b >= c {
		t.Errorf("tokens %d, %d, %d", mine, b, c)
	}
	giveBack(t, last)
	testserver.WaitChildren(t, dir, 0)
}

// A waiter that is cancelled affects neither the other waiters nor the node, even if it came first and
// the node was created for it. With the last waiter the node is deleted.
func TestLocalCancel(t *testing.T) {
	dir := testserver.Path(t)
	holder := newProcess(t, dir, place.Request{}, 1)
	h := holder.hold(t)
	p := newProcess(t, dir, place.Request{}, 1)
	one, two, three := p.wait(t, 1), p.wait(t, 2), p.wait(t, 3)
	testserver.WaitChildren(t, dir, 2)
	names := testserver.Children(t, dir)
	one.cancel()
	one.fails(t, context.Canceled)
	three.cancel()
	three.fails(t, context.Canceled)
	giveBack(t, h)
	l := two.lease(t)
	if l.Path() != path.Join(dir, names[0]) && l.Path() != path.Join(dir, names[1]) {
		t.Errorf("%s is none of %v", l.Path(), names)
	}
	four := p.wait(t, 1) // behind a hold of this process, with no node
	four.cancel()
	four.fails(t, context.Canceled)
	if l.Err() != nil {
		t.Error(l.Err())
	}
	giveBack(t, l)
	testserver.WaitChildren(t, dir, 0)

	h = holder.hold(t)
	one, two = p.wait(t, 1), p.wait(t, 2)
	testserver.WaitChildren(t, dir, 2)
	one.cancel()
	two.cancel()
	one.fails(t, context.Canceled)
	two.fails(t, context.Canceled)
	testserver.WaitChildren(t, dir, 1)
	three = p.wait(t, 1) // a new contender, though the one before was called back
	testserver.WaitChildren(t, dir, 2)
	giveBack(t, h)
	giveBack(t, three.lease(t))
	testserver.WaitChildren(t, dir, 0)
}

// A holder that is asked to release is the last one of its turn.
func TestLocalRevoked(t *testing.T) {
	dir := testserver.Path(t)
	p := newProcess(t, dir, place.Request{}, 10)
	q := newProcess(t, dir, place.Request{}, 10)
	first := p.hold(t)
	second, third := p.wait(t, 1), p.wait(t, 2)
	other := q.wait(t, 1)
	testserver.WaitChildren(t, dir, 2)
	giveBack(t, first)
	l := second.lease(t)
	_, err := testserver.Admin(t).Set(l.Path(), []byte(kinds.RevokeMessage), -1)
	expect.NoError(t, err)
	expect.Receive(t, "the request", l.Revocation().Wait())
	giveBack(t, l)
	giveBack(t, other.lease(t)) // not the third
	last := third.lease(t)
	if first.Revocation().Has() || last.Revocation().Has() {
		t.Error("another hold is told")
	}
	giveBack(t, last)
	testserver.WaitChildren(t, dir, 0)
}

// TryAcquire returns place.ErrBusy without a request while this process holds or waits. It does not disturb
// waiters that come while it is under way.
func TestLocalTry(t *testing.T) {
	dir := testserver.Path(t)
	p, q := newProcess(t, dir, place.Request{}, 10), newProcess(t, dir, place.Request{}, 10)
	busy := func(requests bool) {
		t.Helper()
		p.proxy.ResetRequests()
		if _, err := p.TryAcquire(expect.Patient(t)); !errors.Is(err, place.ErrBusy) {
			t.Fatalf("TryAcquire: %v", err)
		}
		if n := p.proxy.Count(zktest.On(zktest.OpGetChildren2, dir)); (n > 0) != requests {
			t.Errorf("%d listings", n)
		}
	}
	l, err := p.TryAcquire(expect.Patient(t))
	expect.NoError(t, err)
	busy(false)
	w := p.wait(t, 1)
	busy(false)
	giveBack(t, l)
	l = w.lease(t)
	giveBack(t, l)
	testserver.WaitChildren(t, dir, 0)

	o := q.hold(t)
	busy(true)
	w = p.wait(t, 1)
	testserver.WaitChildren(t, dir, 2)
	busy(false)
	giveBack(t, o)
	giveBack(t, w.lease(t))

	// A waiter that comes during the try gets the lock from it, or contends after it.
	for _, taken := range []bool{false, true} {
		if taken {
			o = q.hold(t)
		}
		hold := p.proxy.HoldRequest(zktest.On(zktest.OpGetChildren2, dir))
		tried := make(chan outcome, 1)
		go func() {
			l, err := p.TryAcquire(expect.Patient(t))
			tried <- outcome{l, err}
		}()
		zktest.Eventually(t, testserver.Patience, "the try", func() bool { return p.in() == trying })
		w = p.wait(t, 1)
		gone := p.wait(t, 2)
		gone.cancel()
		gone.fails(t, context.Canceled)
		hold.Release()
		g := <-tried
		if taken {
			if !errors.Is(g.err, place.ErrBusy) {
				t.Errorf("TryAcquire: %v", g.err)
			}
			giveBack(t, o)
			giveBack(t, w.lease(t))
			continue
		}
		expect.NoError(t, g.err)
		giveBack(t, g.lease)
		next := w.lease(t)
		if next.Path() != g.lease.Path() {
			t.Error("not handed on")
		}
		giveBack(t, next)
	}
	testserver.WaitChildren(t, dir, 0)
}

// If the shared contender fails, all waiters get its error. If the manager is closed, waiters behind a
// hold of this process get that error too.
func TestLocalErrors(t *testing.T) {
	dir := testserver.Path(t)
	other := newProcess(t, dir, place.Request{}, 1)
	h := other.hold(t)
	p := newProcess(t, dir, place.Request{}, 1)
	one, two := p.wait(t, 1), p.wait(t, 2)
	testserver.WaitChildren(t, dir, 2)
	expect.NoError(t, p.m.Close())
	one.fails(t, session.ErrClosed)
	two.fails(t, session.ErrClosed)
	three := other.wait(t, 1)
	expect.NoError(t, other.m.Close())
	three.fails(t, session.ErrClosed)
	if !errors.Is(h.Err(), session.ErrClosed) {
		t.Error(h.Err())
	}
	testserver.WaitChildren(t, dir, 0)

	fails := newProcess(t, dir, place.Request{}, 1)
	q := fails.q
	conflicting, err := q.Acquire(expect.Patient(t), place.Request{Kind: &kinds.Kind{Name: "read", Prefixes: []string{kinds.PrefixRead},
		Policy: func(kinds.Node) kinds.Policy { return kinds.Policy{} }}})
	expect.NoError(t, err)
	for range 2 { // the second finds nothing left of the first
		if _, err := fails.Acquire(expect.Patient(t)); !errors.Is(err, place.ErrConflict) {
			t.Errorf("Acquire: %v", err)
		}
	}
	giveBack(t, conflicting)
	giveBack(t, fails.hold(t))

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := fails.Acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	testserver.WaitChildren(t, dir, 0)
}

// Invalid arguments are an error before any I/O.
func TestLocalInvalid(t *testing.T) {
	q, err := place.New(new(core.Manager), "/a")
	expect.NoError(t, err)
	for _, c := range []struct {
		r place.Request
		n int
	}{
		{place.Request{Kind: mutexKind}, 0}, {place.Request{Kind: mutexKind}, -1}, {place.Request{}, 1},
	} {
		if l, err := NewLocal(q, c.r, LocalConfig{Handovers: c.n}); l != nil || !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
