package hold

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A place is given up when its time is over.
func TestKeepTimeOver(t *testing.T) {
	dir := testserver.Path(t)
	p := keeperOf(t, dir, place.Request{Kind: mutexKind}, 0, 20*time.Millisecond)
	for range 3 {
		giveBack(t, p.hold(t))
		testserver.WaitChildren(t, dir, 0)
		p.wantState(t, idle)
	}
	l := p.hold(t) // the timer may run, but the place is in use
	giveBack(t, l)
	testserver.WaitChildren(t, dir, 0)
}

// When the session has no room for another node, the place that was not used for longest goes.
func TestKeepLimitOfNodes(t *testing.T) {
	dir := testserver.Path(t)
	m := testserver.Connect(t, testserver.Server(t).Addr(0), session.WithMaxNodes(2))
	var all [3]*Local
	for i := range all {
		all[i] = localOn(t, m, dir+string(rune('a'+i)), place.Request{Kind: mutexKind}, 0, maxKeep)
	}
	use := func(l *Local) {
		t.Helper()
		lease, err := l.Acquire(expect.Patient(t))
		expect.NoError(t, err)
		giveBack(t, lease)
	}
	use(all[0])
	use(all[1])
	use(all[0])
	use(all[2])
	if a, b, c := all[0].in(), all[1].in(), all[2].in(); a != keeping || b != idle || c != keeping {
		t.Errorf("states %v, %v, %v", a, b, c)
	}
	x, err := all[0].Acquire(expect.Patient(t))
	expect.NoError(t, err)
	y, err := all[2].Acquire(expect.Patient(t))
	expect.NoError(t, err)
	if _, err := all[1].Acquire(expect.Patient(t)); !errors.Is(err, session.ErrTooManyNodes) {
		t.Errorf("all places are in use: %v", err)
	}
	giveBack(t, x)
	giveBack(t, y)
	// A lock without the option gets the room too.
	q, err := place.New((*core.Manager)(m), dir)
	expect.NoError(t, err)
	plain, err := q.Acquire(expect.Patient(t), place.Request{Kind: mutexKind})
	expect.NoError(t, err)
	if all[0].in() != idle || all[2].in() != keeping {
		t.Errorf("states %v, %v", all[0].in(), all[2].in())
	}
	giveBack(t, plain)
}

// A session has room for a node as soon as a place that was kept is gone, also if that place is given up for
// another reason.
func TestKeepLimitWhileLeaving(t *testing.T) {
	dir := testserver.Path(t)
	p := newKeeper(t, dir+"a", 0, session.WithMaxNodes(1))
	q, err := place.New((*core.Manager)(p.m), dir+"b")
	expect.NoError(t, err)
	giveBack(t, p.hold(t))
	del := p.proxy.HoldRequest(zktest.Any(zktest.OpDelete))
	other := newProcess(t, dir+"a", place.Request{}, 1)
	theirs := other.wait(t, 1)
	<-del.Hit()
	mine := make(chan outcome, 1)
	go func() {
		l, err := q.Acquire(expect.Patient(t), place.Request{Kind: mutexKind})
		mine <- outcome{l, err}
	}()
	del.Release()
	giveBack(t, (&waits{done: mine}).lease(t))
	giveBack(t, theirs.lease(t))
}

// Other readers may come while readers list the directory. Then they list again, and it is no reason not to
// keep the next places. A writer is one, and a listing that failed is none.
func TestKeepReadersListAgain(t *testing.T) {
	ended := seen(core.WatchChanged)
	for _, c := range []struct {
		what  string
		watch *core.Watch
		alone bool
		kept  bool
		habit habit
	}{
		{"another reader", ended, true, true, habit{}},
		{"a writer", ended, false, false, habit{skip: 1, penalty: 1}},
		{"no listing", nil, false, false, habit{}},
	} {
		p := keeperOf(t, testserver.Path(t), place.Request{Kind: readKind}, 0, maxKeep)
		giveBack(t, p.hold(t))
		turn := p.present()
		p.mu.Lock()
		turn.setting = true
		p.mu.Unlock()
		p.endSetting(turn, c.watch, c.alone)
		zktest.Eventually(t, testserver.Patience, "the watch", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return !c.kept || turn.pending()
		})
		kept := p.in() == keeping
		p.mu.Lock()
		if kept != c.kept || p.habit != c.habit {
			t.Errorf("%s: kept %v, %+v", c.what, kept, p.habit)
		}
		p.mu.Unlock()
	}
}

// A contender of the same process gets what its process keeps, also one that only tries.
func TestKeepOwnProcess(t *testing.T) {
	dir := testserver.Path(t)
	p := newKeeper(t, dir, 0)
	second := localOn(t, p.m, dir, place.Request{Kind: mutexKind}, 0, maxKeep)
	giveBack(t, p.hold(t))
	l, err := second.TryAcquire(expect.Patient(t))
	for errors.Is(err, place.ErrBusy) { // a busy machine can take longer than a try waits for kept places
		l, err = second.TryAcquire(expect.Patient(t))
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
	p, other := newKeeper(t, dir, 0), newProcess(t, dir, place.Request{}, 1)
	giveBack(t, other.hold(t)) // so that there is a directory
	listing := p.proxy.HoldRequest(zktest.On(zktest.OpGetChildren2, dir))
	mine := p.begin(expect.Patient(t))
	<-listing.Hit()
	testserver.WaitChildren(t, dir, 1)
	theirs := other.wait(t, 1)
	testserver.WaitChildren(t, dir, 2)
	listing.Release()
	l := mine.lease(t)
	if p.present().fit {
		t.Error("nobody was seen to wait")
	}
	giveBack(t, l)
	giveBack(t, theirs.lease(t))
	testserver.WaitChildren(t, dir, 0)
}

// A place that was waited for is not kept: the node ahead has used the watch up.
func TestKeepAfterWait(t *testing.T) {
	dir := testserver.Path(t)
	p, other := newKeeper(t, dir, 0), newProcess(t, dir, place.Request{}, 1)
	theirs := other.hold(t)
	mine := p.wait(t, 1)
	testserver.WaitChildren(t, dir, 2)
	giveBack(t, theirs)
	giveBack(t, mine.lease(t))
	if p.in() != idle {
		t.Errorf("state %v", p.in())
	}
	testserver.WaitChildren(t, dir, 0)
}

// Near the end of the sequence numbers no place is kept, so that the directory becomes empty.
func TestKeepLastNumbers(t *testing.T) {
	defer func(old int32) { place.RestartFrom = old }(place.RestartFrom)
	place.RestartFrom = 0
	dir := testserver.Path(t)
	p := newKeeper(t, dir, 0)
	giveBack(t, p.hold(t))
	if p.in() != idle {
		t.Errorf("state %v", p.in())
	}
}

// A holder that is asked to give the lock up does not keep its place, and a place that is kept is given
// up.
func TestKeepRevoked(t *testing.T) {
	dir := testserver.Path(t)
	p := keeperOf(t, dir, place.Request{Kind: mutexKind}, 0, maxKeep)
	revoke := func(l *place.Lease) {
		t.Helper()
		if _, err := testserver.Admin(t).Set(l.Path(), []byte(kinds.RevokeMessage), -1); err != nil {
			t.Fatal(err)
		}
	}
	l := p.hold(t)
	revoke(l)
	expect.Receive(t, "the request", l.Revocation().Wait())
	giveBack(t, l)
	if p.in() != idle {
		t.Errorf("state %v", p.in())
	}
	l = p.hold(t)
	tokenOf(t, l) // the watch on the node is set
	giveBack(t, l)
	revoke(l)
	p.wantState(t, idle)
	testserver.WaitChildren(t, dir, 0)
	if l.Revocation().Has() {
		t.Error("a hold that was over is told")
	}
}

// A turn that has lasted for a session timeout ends. Goroutines that wait get a new place, which can be
// kept: the end of the old one does not count as a wait.
func TestKeepSuccession(t *testing.T) {
	dir := testserver.Path(t)
	p := newKeeper(t, dir, 0)
	age := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.turn.since = time.Now().Add(-time.Hour)
	}
	l := p.hold(t)
	age()
	giveBack(t, l)
	if p.in() != idle {
		t.Errorf("without a waiter: state %v", p.in())
	}
	first := p.hold(t)
	age()
	w := p.wait(t, 1)
	giveBack(t, first)
	next := w.lease(t)
	if next.Path() == first.Path() {
		t.Error("the old place was handed over")
	}
	giveBack(t, next)
	if p.in() != keeping {
		t.Errorf("state %v", p.in())
	}
	testserver.WaitChildren(t, dir, 1)
}

// Contenders tells a place that is kept from one that is held.
func TestKeepContenders(t *testing.T) {
	dir := testserver.Path(t)
	p := newKeeper(t, dir, 0)
	look := func(by *Local) kinds.Contender {
		t.Helper()
		all, err := by.q.Contenders(expect.Patient(t), mutexKind)
		expect.NoError(t, err)
		if len(all) != 1 {
			t.Fatalf("%d contenders", len(all))
		}
		return all[0]
	}
	l := p.hold(t)
	if c := look(p.Local); c.Kept || c.HeldSince.IsZero() || !c.Holder {
		t.Errorf("held: %+v", c)
	}
	giveBack(t, l)
	if c := look(p.Local); !c.Kept || !c.HeldSince.IsZero() || !c.Own {
		t.Errorf("kept: %+v", c)
	}
	other := newProcess(t, dir, place.Request{}, 1)
	if c := look(other.Local); c.Kept || c.Own {
		t.Errorf("kept by another: %+v", c)
	}
	giveBack(t, p.hold(t)) // looking is no contending
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
	p, other := newKeeper(t, dir, 1), newProcess(t, dir, place.Request{}, 1)
	for range 20 {
		giveBack(t, p.hold(t))
		giveBack(t, p.hold(t))
		giveBack(t, other.hold(t))
		p.wantState(t, idle)
	}
	testserver.WaitChildren(t, dir, 0)
	zktest.Eventually(t, testserver.Patience, "all watches to end", func() bool { return testserver.Watches(t) <= before })
}
