package share

import (
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// all matches every request but the connection's own.
func all(r zktest.Request) bool { return r.Path != "" }

// A contender of another process gets the lock at once from a process that keeps its place, and at the
// release from one that holds.
func TestKeepNewcomer(t *testing.T) {
	for _, inUse := range []bool{false, true} {
		t.Run(map[bool]string{false: "kept", true: "in use"}[inUse], func(t *testing.T) {
			dir := testserver.Path(t)
			// A place is kept for a session timeout at most: longer than the newcomer waits.
			p, other := newKeeper(t, dir, 0, session.WithTimeout(2*testserver.Patience)), newProcess(t, dir, 1)
			giveBack(t, p.hold(t))
			if !inUse {
				giveBack(t, other.hold(t))
				p.want(t, idle)
				testserver.WaitChildren(t, dir, 0)
				return
			}
			l := p.hold(t) // again
			turn := p.present()
			w := other.wait(t, 1)
			zktest.Eventually(t, testserver.Patience, "the news", func() bool { return isClosed(turn.disturbed) })
			if l.Err() != nil {
				t.Fatal(l.Err())
			}
			giveBack(t, l)
			next := w.lease(t)
			if p.in() != idle {
				t.Errorf("state %v", p.in())
			}
			giveBack(t, next)
			testserver.WaitChildren(t, dir, 0)
		})
	}
}

// A contender of the same process gets what its process keeps, also one that only tries.
func TestKeepOwnProcess(t *testing.T) {
	dir := testserver.Path(t)
	p := newKeeper(t, dir, 0)
	second := turnsOn(t, p.m, dir, func(q *queue.Queue) *Turns { return NewTurns(q, mutex, 0, longestKeep) })
	giveBack(t, p.hold(t))
	l, err := second.Acquire(expect.Patient(t), true)
	for errors.Is(err, queue.ErrBusy) { // a busy machine can take longer than a try waits for kept places
		l, err = second.Acquire(expect.Patient(t), true)
	}
	expect.NoError(t, err)
	if p.in() != idle {
		t.Errorf("state %v", p.in())
	}
	giveBack(t, l)
	giveBack(t, p.hold(t))
	if s := second.in(); s != idle {
		t.Errorf("state %v", s)
	}
}

// A contender that has come before the listing is seen by it, and the place is not kept.
func TestKeepCrowdedListing(t *testing.T) {
	dir := testserver.Path(t)
	p, other := newKeeper(t, dir, 0), newProcess(t, dir, 1)
	giveBack(t, other.hold(t)) // so that there is a directory
	listing := p.proxy.HoldRequest(zktest.On(zktest.OpGetChildren2, dir))
	mine := p.begin(expect.Patient(t))
	<-listing.Hit()
	testserver.WaitChildren(t, dir, 1)
	theirs := other.wait(t, 1)
	testserver.WaitChildren(t, dir, 2)
	listing.Release()
	l := mine.lease(t)
	if p.present().disturbed != nil {
		t.Error("nobody was seen to wait")
	}
	giveBack(t, l)
	giveBack(t, theirs.lease(t))
	testserver.WaitChildren(t, dir, 0)
}

// Contenders tells a place that is kept from one that is held.
func TestKeepContenders(t *testing.T) {
	dir := testserver.Path(t)
	p := newKeeper(t, dir, 0)
	look := func(by *process) queue.Contender {
		t.Helper()
		all, err := by.q.Contenders(expect.Patient(t), mutex.Kind)
		expect.NoError(t, err)
		if len(all) != 1 {
			t.Fatalf("%d contenders", len(all))
		}
		return all[0]
	}
	l := p.hold(t)
	if c := look(p); c.Kept || c.HeldSince.IsZero() || !c.Holder {
		t.Errorf("held: %+v", c)
	}
	giveBack(t, l)
	if c := look(p); !c.Kept || !c.HeldSince.IsZero() || !c.Own {
		t.Errorf("kept: %+v", c)
	}
	other := newProcess(t, dir, 1)
	if c := look(other); c.Kept || c.Own {
		t.Errorf("kept by another: %+v", c)
	}
	giveBack(t, p.hold(t)) // looking is no acquiring
	testserver.WaitChildren(t, dir, 1)
}

// The place of a lease that nobody has used is not kept. That says nothing about the next one.
func TestUnwantedIsNotKept(t *testing.T) {
	dir := testserver.Path(t)
	p := newKeeper(t, dir, 0)
	p.kept(t) // taken again, and then not used
	unwanted(t, p.hold(t))
	if p.in() != idle {
		t.Errorf("state %v", p.in())
	}
	testserver.WaitChildren(t, dir, 0)
	unwanted(t, p.hold(t))
	if p.in() != idle || p.habit != (habit{}) {
		t.Errorf("state %v, %+v", p.in(), p.habit)
	}
	testserver.WaitChildren(t, dir, 0)
	p.kept(t)
}

// An acquisition looks itself whether a turn that is kept may be used again. Nobody has acted on what has happened: mu is
// locked meanwhile.
func TestKeepLooksFirst(t *testing.T) {
	for what, happen := range map[string]func(p *process, kept *turn){
		"somebody has come": func(p *process, kept *turn) {
			other := newProcess(t, p.q.Path(), 1)
			other.begin(expect.Patient(t))
			expect.Receive(t, "the news", kept.disturbed)
		},
		"the session has ended": func(p *process, kept *turn) {
			s := testserver.Session(t, p.m)
			expect.NoError(t, p.proxy.Expire(expect.Patient(t), s.ID()))
			expect.Receive(t, "the end", s.Done())
			kept.disturbed = make(chan struct{}) // as if it were pending
		},
		"the node is gone": func(p *process, kept *turn) {
			testserver.Delete(t, kept.Path())
			expect.Receive(t, "the news", kept.Done())
			kept.disturbed = make(chan struct{})
		},
		"another client has asked for the lock": func(p *process, kept *turn) {
			_, err := testserver.Admin(t).Set(kept.Path(), []byte(queue.RevokeMessage), -1)
			expect.NoError(t, err)
			expect.Receive(t, "the request", kept.Last())
		},
		"its time is over":            func(p *process, kept *turn) { kept.until = time.Now() },
		"the watch no longer counts":  func(p *process, kept *turn) { kept.limit = time.Now() },
		"it is in use by a goroutine": func(p *process, kept *turn) { kept.holds++ },
	} {
		t.Run(what, func(t *testing.T) {
			p := newKeeper(t, testserver.Path(t), 0)
			p.kept(t)
			p.mu.Lock()
			happen(p, p.turn)
			taken := p.useAgainLocked()
			p.mu.Unlock()
			if taken != nil {
				t.Error("the turn was used again")
			}
		})
	}
}

// A turn that may not be used again is left by the next call, which does not wait for others to leave it. A try too gets another
// one.
func TestKeepLeavesWhatIsOver(t *testing.T) {
	for _, try := range []bool{false, true} {
		dir := testserver.Path(t)
		p := newKeeper(t, dir, 0)
		node := p.kept(t).Path()
		p.mu.Lock()
		p.turn.until = time.Now()
		p.mu.Unlock()
		l, err := p.Acquire(expect.Patient(t), try)
		expect.NoError(t, err)
		if l.Path() == node {
			t.Error("used again")
		}
		giveBack(t, l)
		p.GiveUpKept()
		testserver.WaitChildren(t, dir, 0)
	}
}
