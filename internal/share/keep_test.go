package share

import (
	"context"
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

// A kept place is used again without a request, by Acquire and by TryAcquire, and is the same for the
// servers.
func TestKeepReuse(t *testing.T) {
	dir := testserver.Path(t)
	p := newKeeper(t, dir, 0)
	l := p.kept(t)
	token, node := tokenOf(t, l), l.Path()
	if p.in() != keeping || !errors.Is(l.Err(), queue.ErrReleased) {
		t.Fatalf("state %v, %v", p.in(), l.Err())
	}
	p.proxy.ResetRequests()
	for i := range 100 {
		l, err := p.Acquire(expect.Patient(t), false)
		if i%2 == 1 {
			expect.NoError(t, err)
			giveBack(t, l)
			l, err = p.Acquire(expect.Patient(t), true)
		}
		expect.NoError(t, err)
		if l.Path() != node || tokenOf(t, l) != token || l.Err() != nil {
			t.Fatalf("%s, token %d, %v", l.Path(), tokenOf(t, l), l.Err())
		}
		giveBack(t, l)
	}
	if n := p.proxy.Count(all); n != 0 {
		t.Errorf("%d requests", n)
	}
	testserver.WaitChildren(t, dir, 1)
}

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

// Goroutines of the process hand the lock over without end as long as nobody else has come, and as often
// as the Local may from then on.
func TestKeepHandOver(t *testing.T) {
	for _, most := range []int{0, 2} {
		dir := testserver.Path(t)
		p, other := newKeeper(t, dir, most), newProcess(t, dir, 1)
		l := p.hold(t)
		for range 5 {
			w := p.wait(t, 1)
			giveBack(t, l)
			l = w.lease(t)
		}
		testserver.WaitChildren(t, dir, 1)
		var mine []*waits
		for i := range most + 1 {
			mine = append(mine, p.wait(t, i+1))
		}
		theirs, turn := other.wait(t, 1), p.present()
		zktest.Eventually(t, testserver.Patience, "the news", func() bool { return isClosed(turn.disturbed) })
		for _, w := range mine[:most] {
			giveBack(t, l)
			l = w.lease(t)
		}
		giveBack(t, l)
		giveBack(t, theirs.lease(t))
		giveBack(t, mine[most].lease(t))
		p.GiveUpKept() // the others may have left before its listing
		testserver.WaitChildren(t, dir, 0)
	}
}

// A try of another process gets a lock that is only kept, and finds one busy that is held.
func TestKeepTry(t *testing.T) {
	dir := testserver.Path(t)
	p, other := newKeeper(t, dir, 0), newProcess(t, dir, 1)
	got := false
	zktest.Eventually(t, testserver.Patience, "a try", func() bool { // a busy machine can be slow to give a place up
		giveBack(t, p.hold(t))
		p.forgetHabit()
		l, err := other.Acquire(expect.Patient(t), true)
		if got = err == nil; got {
			giveBack(t, l)
		}
		testserver.WaitChildren(t, dir, 0)
		return got
	})
	l := p.hold(t)
	if _, err := other.Acquire(expect.Patient(t), true); !errors.Is(err, queue.ErrBusy) {
		t.Errorf("while it is held: %v", err)
	}
	giveBack(t, l)
	testserver.WaitChildren(t, dir, 0)
}

// Two processes that take turns soon keep no places, and keep them again once there is some use in it.
func TestKeepHabit(t *testing.T) {
	dir := testserver.Path(t)
	p, other := newKeeper(t, dir, 0), newProcess(t, dir, 1)
	var kept []bool
	for range 12 {
		giveBack(t, p.hold(t))
		kept = append(kept, p.in() == keeping)
		giveBack(t, other.hold(t))
		p.want(t, idle)
	}
	want := []bool{true, false, true, false, false, true, false, false, false, false, true, false}
	for i := range want {
		if kept[i] != want[i] {
			t.Fatalf("kept %v, want %v", kept, want)
		}
	}
	for p.in() != keeping {
		giveBack(t, p.hold(t))
	}
	giveBack(t, p.hold(t))
	giveBack(t, other.hold(t))
	p.want(t, idle)
	if p.habit != (habit{}) {
		t.Errorf("after a place that was used again: %+v", p.habit)
	}
}

// A node that an operator deletes while it is kept is gone, and no loss of a hold.
func TestKeepDeleted(t *testing.T) {
	dir := testserver.Path(t)
	losses := 0
	p := newKeeper(t, dir, 0, session.WithTrace(session.Trace{
		Loss: func(context.Context, session.HoldInfo, error) { losses++ },
	}))
	l := p.kept(t)
	token, turn := tokenOf(t, l), p.present()
	testserver.Delete(t, l.Path())
	p.want(t, idle)
	// The event for the directory follows that for the node. It must not end the next watch.
	zktest.Eventually(t, testserver.Patience, "both events", func() bool { return isClosed(turn.disturbed) })
	p.forgetHabit()
	next := p.hold(t)
	if next.Path() == l.Path() || tokenOf(t, next) <= token {
		t.Errorf("%s again, tokens %d and %d", l.Path(), token, tokenOf(t, next))
	}
	giveBack(t, next)
	if losses > 0 {
		t.Errorf("%d losses", losses)
	}
	testserver.Delete(t, next.Path())
	testserver.WaitChildren(t, dir, 0)
	p.want(t, idle)
}

// No place is used again after a reconnect: what has come meanwhile is not known.
func TestKeepReconnect(t *testing.T) {
	dir := testserver.Path(t)
	p := newKeeper(t, dir, 0)
	l := p.kept(t)
	p.proxy.Disconnect()
	p.want(t, idle)
	p.forgetHabit()
	next := p.hold(t)
	if next.Path() == l.Path() {
		t.Error("the place was used again")
	}
	testserver.WaitChildren(t, dir, 1)
	turn := p.present()
	p.proxy.Disconnect() // while it is in use
	zktest.Eventually(t, testserver.Patience, "the news", func() bool { return isClosed(turn.disturbed) })
	giveBack(t, next)
	testserver.WaitChildren(t, dir, 0)
}

// A place whose session has ended is gone.
func TestKeepSessionLost(t *testing.T) {
	dir := testserver.Path(t)
	p := newKeeper(t, dir, 0)
	l := p.kept(t)
	session := p.present().Session().ID()
	expect.NoError(t, p.proxy.Expire(expect.Patient(t), testserver.Session(t, p.m).ID()))
	p.want(t, idle)
	p.forgetHabit() // the end of the node may have been told before that of the session
	next := p.hold(t)
	if next.Path() == l.Path() || p.present().Session().ID() == session {
		t.Error("the place of the old session was used")
	}
	giveBack(t, next)
	testserver.WaitChildren(t, dir, 1)
	expect.NoError(t, p.m.Close())
	testserver.WaitChildren(t, dir, 0)
	if p.in() != idle {
		p.want(t, idle)
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

// A holder that is asked to give the lock up does not keep its place, and a place that is kept is given
// up.
func TestKeepRevoked(t *testing.T) {
	dir := testserver.Path(t)
	p := newKeeper(t, dir, 0)
	l := p.hold(t)
	revoke(t, l)
	expect.Receive(t, "the request", l.Revoked())
	giveBack(t, l)
	if p.in() != idle {
		t.Errorf("state %v", p.in())
	}
	testserver.WaitChildren(t, dir, 0)
	l = p.hold(t)
	tokenOf(t, l) // the watch on the node is set
	giveBack(t, l)
	turn := p.present()
	if p.in() != keeping {
		t.Fatalf("state %v", p.in())
	}
	revoke(t, l)
	p.want(t, idle)
	if !time.Now().Before(turn.limit) {
		t.Error("given up because its time was over")
	}
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

// Hooks are told of an acquisition and a hold that use a place again, and the data of its node names no
// acquisition.
func TestKeepHooks(t *testing.T) {
	dir := testserver.Path(t)
	acquired, held, ended := 0, 0, 0
	p := newKeeper(t, dir, 0, session.WithTrace(session.Trace{
		Acquire: func(ctx context.Context, i session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			return ctx, func(r session.AcquireResult) {
				if r.Err == nil && r.Attempts == min(1, 1-min(1, acquired)) {
					acquired++
				}
			}
		},
		Hold: func(context.Context, session.HoldInfo) func(error) {
			held++
			return func(err error) {
				if err == nil {
					ended++
				}
			}
		},
	}))
	for range 3 {
		giveBack(t, p.hold(t))
	}
	if acquired != 3 || held != 3 || ended != 3 {
		t.Errorf("%d acquisitions, %d holds, %d ends", acquired, held, ended)
	}
}

// Nothing stays on the servers, whether places are used again, taken away or given up.
func TestKeepLeavesNothing(t *testing.T) {
	dir := testserver.Path(t)
	before := testserver.Watches(t)
	p, other := newKeeper(t, dir, 1), newProcess(t, dir, 1)
	for range 20 {
		giveBack(t, p.hold(t))
		giveBack(t, p.hold(t))
		giveBack(t, other.hold(t))
		p.want(t, idle)
	}
	testserver.WaitChildren(t, dir, 0)
	zktest.Eventually(t, testserver.Patience, "all watches to end", func() bool { return testserver.Watches(t) <= before })
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

// A waiter of the process gets the lock that another did not want, and its place is kept after that.
func TestUnwantedIsHandedOver(t *testing.T) {
	dir := testserver.Path(t)
	p := newKeeper(t, dir, 0)
	first := p.hold(t)
	next := p.wait(t, 1)
	last := p.wait(t, 2)
	unwanted(t, first)
	second := next.lease(t)
	if second.Path() != first.Path() {
		t.Errorf("not handed over: %s, then %s", first.Path(), second.Path())
	}
	unwanted(t, second)
	giveBack(t, last.lease(t))
	if p.in() != keeping {
		t.Errorf("state %v", p.in())
	}
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
