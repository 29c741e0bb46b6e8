package share

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// As above for waiters that give up while their process holds: those that remain get the next turn.
func TestGivesUpBehindOwnHold(t *testing.T) {
	dir := testserver.Path(t)
	for _, nodes := range []int{1, 2} {
		p := newProcess(t, dir, 1, session.WithNodeLimits(nodes, 1<<20))
		for range 20 {
			one := p.hold(t)
			two, three := p.wait(t, 1), p.wait(t, 2)
			giveBack(t, one)
			l := two.lease(t)
			four := p.wait(t, 2)
			removal := l.StartRelease(expect.Patient(t), true)
			three.cancel()
			if g := <-three.done; g.err == nil {
				giveBack(t, g.lease)
			} else if !errors.Is(g.err, context.Canceled) {
				t.Fatal(g.err)
			}
			five := p.begin(expect.Patient(t))
			giveBack(t, four.lease(t))
			giveBack(t, five.lease(t))
			expect.NoError(t, removal.Wait(expect.Patient(t)))
		}
	}
	testserver.WaitChildren(t, dir, 0)
}

// A goroutine that comes while a turn is left waits until the delete was sent: the session may have one node.
func TestDeleteLeavesFirst(t *testing.T) {
	var p *process
	var next *waits
	p = newProcess(t, testserver.Path(t), 1, session.WithNodeLimits(1, 1<<20), session.WithTrace(session.Trace{
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if r.Op == "delete" && next == nil {
				next = p.wait(t, 1)
				next.pending(t)
			}
			return ctx, nil
		},
	}))
	giveBack(t, p.hold(t))
	giveBack(t, next.lease(t))
}

// No hook is called while a mutex of this package or of package queue is locked, since a hook may look at locks. Here all hooks
// do, in each way in which a turn is left or lost.
func TestNoProgramUnderMutex(t *testing.T) {
	var all []*Turns
	var ready atomic.Bool
	var looked sync.Map
	look := func(hook string) {
		looks := make(chan struct{})
		go func() {
			defer close(looks)
			for _, s := range all {
				s.WhenIdle(nil)
				s.why()
				if t := s.present(); t != nil {
					t.Holder()
					_ = t.Err()
				}
			}
			looked.Store(hook, true)
		}()
		select {
		case <-looks:
		case <-time.After(testserver.Patience):
			t.Errorf("the hook of %s cannot look at a lock", hook)
		}
	}
	p := newProcess(t, testserver.Path(t), 1, session.WithTrace(session.Trace{
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if ready.Load() {
				look(r.Op)
			}
			return ctx, nil
		},
		Hold: func(context.Context, session.HoldInfo) func(error) {
			look("hold")
			return func(error) { look("end of hold") }
		},
		Release: func(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) {
			look("release")
			return ctx, func(error) { look("end of release") }
		},
		Loss: func(context.Context, session.HoldInfo, error) { look("loss") },
	}))
	dir, shared := testserver.Path(t), testserver.Path(t)
	all = []*Turns{
		p.Turns,
		turnsOn(t, p.m, dir, func(q *queue.Queue) *Turns { return NewTurns(q, mutex, 1, longestKeep) }),
		turnsOn(t, p.m, shared, func(q *queue.Queue) *Turns { return NewReaders(q, reader, longestKeep) }),
	}
	ready.Store(true)
	other := newProcess(t, dir, 1).m
	take := func(s *Turns) *queue.Lease {
		s.forgetHabit()
		l, err := s.Acquire(expect.Patient(t), false)
		expect.NoError(t, err)
		return l
	}
	for _, s := range all {
		for range 2 { // the second time, a kept turn is used
			giveBack(t, take(s))
		}
		r := mutex
		if s.readers {
			r = writer
		}
		l, err := queueOn(t, other, s.q.Path()).Acquire(expect.Patient(t), r) // it comes to a kept turn
		expect.NoError(t, err)
		giveBack(t, l)
		giveBack(t, take(s))
		s.GiveUpKept()
		l = take(s)
		testserver.Delete(t, l.Path())
		zktest.Eventually(t, testserver.Patience, "the loss of the node", func() bool { return l.Err() != nil })
	}
	held := []*queue.Lease{take(all[0]), take(all[1]), take(all[2])}
	expect.NoError(t, p.proxy.Expire(expect.Patient(t), testserver.Session(t, p.m).ID()))
	for _, l := range held {
		expect.Receive(t, "the loss of the session", l.Done())
	}
	for _, hook := range []string{"create", "getChildren", "getData", "delete", "hold", "end of hold", "release", "end of release", "loss"} {
		zktest.Eventually(t, testserver.Patience, "the hook of "+hook, func() bool { _, ok := looked.Load(hook); return ok })
	}
}

// A turn that was asked back is the last of its kind before its holder can know: a holder that gives the lock back because it
// has heard of the request never gives it to a goroutine of its process.
func TestRevokedIsLast(t *testing.T) {
	for _, waited := range []bool{false, true} {
		dir := testserver.Path(t)
		other := newProcess(t, dir, 1)
		p := newProcess(t, dir, 100)
		var l *queue.Lease
		if waited { // the watch on the node is there, and its event comes before the new data
			o := other.hold(t)
			w := p.wait(t, 1)
			testserver.WaitChildren(t, dir, 2)
			giveBack(t, o)
			l = w.lease(t)
		} else { // the data that comes with the watch asks already
			watch := p.proxy.HoldRequest(func(r zktest.Request) bool { return r.Op == zktest.OpGetData && r.Path != dir })
			l = p.hold(t)
			expect.Receive(t, "the watch", watch.Hit())
			defer watch.Release()
			revoke(t, l)
			watch.Release()
		}
		last := make(chan bool, 1)
		turn := p.present()
		defer l.AfterRevoke(func() { last <- turn.IsLast() })()
		next := p.wait(t, 1)
		if waited {
			revoke(t, l)
		}
		select {
		case is := <-last:
			if !is {
				t.Error("the holder knows of the request, and the turn can be handed over")
			}
		case <-time.After(testserver.Patience):
			t.Fatal("no request")
		}
		giveBack(t, l)
		if n := next.lease(t); n.Path() == l.Path() {
			t.Error("handed over")
		} else {
			giveBack(t, n)
		}
	}
}
