package share

import (
	"context"
	"errors"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// After the last hand-over of a turn, other processes have their turn, and the waiters that remain are
// behind them. The token grows from turn to turn.
func TestBound(t *testing.T) {
	dir := testserver.Path(t)
	p, q := newProcess(t, dir, 1), newProcess(t, dir, 1)
	first := p.hold(t)
	second, third := p.wait(t, 1), p.wait(t, 2)
	other := q.wait(t, 1)
	testserver.WaitChildren(t, dir, 2)
	giveBack(t, first)
	l := second.lease(t)
	mine := tokenOf(t, l) // a lease that was released may not know it
	p.proxy.ResetRequests()
	answer := p.proxy.HoldReply(zktest.On(zktest.OpDelete, dir))
	released := l.StartRelease(expect.Patient(t), true)
	// Delete, create and listing leave in one flight, in this order.
	zktest.Eventually(t, testserver.Patience, "the listing", func() bool { return p.proxy.Count(zktest.On(zktest.OpGetChildren2, dir)) > 0 })
	var ops []zktest.Op
	for _, r := range p.proxy.Requests() {
		if path.Dir(r.Path) == dir || r.Path == dir {
			ops = append(ops, r.Op)
		}
	}
	if len(ops) < 3 || ops[0] != zktest.OpDelete || ops[len(ops)-1] != zktest.OpGetChildren2 {
		t.Errorf("requests %v", ops)
	}
	answer.Release()
	expect.NoError(t, released.Wait(expect.Patient(t)))
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

// TryAcquire returns queue.ErrBusy without a request while this process holds. It does not disturb
// waiters that come while it is under way.
func TestTry(t *testing.T) {
	dir := testserver.Path(t)
	p, q := newProcess(t, dir, 10), newProcess(t, dir, 10)
	l := p.hold(t)
	p.proxy.ResetRequests()
	if _, err := p.Acquire(expect.Patient(t), true); !errors.Is(err, queue.ErrBusy) {
		t.Fatalf("TryAcquire: %v", err)
	}
	if n := p.proxy.Count(zktest.On(zktest.OpGetChildren2, dir)); n > 0 {
		t.Errorf("%d listings", n)
	}
	giveBack(t, l)
	testserver.WaitChildren(t, dir, 0)

	// A waiter that comes during the try gets the lock from it, or contends after it.
	for _, taken := range []bool{false, true} {
		var o *queue.Lease
		if taken {
			o = q.hold(t)
		}
		listing := p.proxy.HoldRequest(zktest.On(zktest.OpGetChildren2, dir))
		tried := make(chan outcome, 1)
		go func() {
			l, err := p.Acquire(expect.Patient(t), true)
			tried <- outcome{l, err}
		}()
		zktest.Eventually(t, testserver.Patience, "the try", func() bool { return p.in() == trying })
		w := p.wait(t, 1)
		gone := p.wait(t, 2)
		gone.cancel()
		gone.fails(t, context.Canceled)
		listing.Release()
		g := <-tried
		if taken {
			if !errors.Is(g.err, queue.ErrBusy) {
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

// There is no connection. The other one says so if its context ends.
func TestFirstWhy(t *testing.T) {
	dir := testserver.Path(t)
	p := newProcess(t, dir, 1)
	giveBack(t, p.hold(t))
	p.proxy.Refuse(true)
	p.proxy.Disconnect()
	zktest.Eventually(t, testserver.Patience, "the end of the connection", func() bool { return p.m.State() != session.Connected })
	one := p.begin(expect.Patient(t))
	two := p.wait(t, 2)
	two.cancel()
	g := <-two.done
	if !errors.Is(g.err, context.Canceled) || !strings.Contains(g.err.Error(), "not connected") {
		t.Errorf("the other one's error: %v", g.err)
	}
	p.proxy.Refuse(false)
	giveBack(t, one.lease(t))
}

// heldEnd is a hook that sends when contenders wait, and holds the first of them up at the end of its
// wait.
func heldEnd(watching chan<- struct{}, ended chan<- error, proceed <-chan struct{}) session.Option {
	var once sync.Once
	return session.WithTrace(session.Trace{
		Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
			watching <- struct{}{}
			return ctx, func(err error) {
				once.Do(func() {
					ended <- err
					<-proceed
				})
			}
		},
	})
}

// An acquisition that was called back, because no waiter was left, takes its time to end. A waiter that comes in the
// meantime gets the lock: by another one if the first has failed, and by the first if that was granted at the moment of the
// call-back.
func TestCalledBack(t *testing.T) {
	for _, granted := range []bool{false, true} {
		t.Run(map[bool]string{false: "waiting", true: "granted"}[granted], func(t *testing.T) {
			dir := testserver.Path(t)
			holder := newProcess(t, dir, 1)
			h := holder.hold(t)
			watching, ended, proceed := make(chan struct{}, 10), make(chan error, 1), make(chan struct{})
			p := newProcess(t, dir, 1, heldEnd(watching, ended, proceed))
			first := p.wait(t, 1)
			expect.Receive(t, "the first to wait", watching)
			if granted {
				giveBack(t, h)
				expect.NoError(t, <-ended)
			}
			first.cancel()
			p.settle(t, 0)
			if !granted {
				<-ended
			}
			second := p.wait(t, 1)
			close(proceed)
			first.fails(t, context.Canceled)
			if !granted {
				expect.Receive(t, "the second to wait", watching)
				testserver.WaitChildren(t, dir, 2)
				giveBack(t, h)
			}
			giveBack(t, second.lease(t))
			testserver.WaitChildren(t, dir, 0)
			third := p.hold(t)
			giveBack(t, third)
			testserver.WaitChildren(t, dir, 0)
		})
	}
}
