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

// newKeeper is newProcess with a Local that keeps its place, for a minute: a test that depends on the time
// has its own.
func newKeeper(t *testing.T, dir string, handovers int, opts ...session.Option) *process {
	t.Helper()
	return keeperOf(t, dir, place.Request{Kind: mutexKind}, handovers, maxKeep, opts...)
}

func keeperOf(t *testing.T, dir string, r place.Request, handovers int, d time.Duration, opts ...session.Option) *process {
	t.Helper()
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), append([]session.Option{session.WithTimeout(testserver.Patience)}, opts...)...)
	return &process{localOn(t, m, dir, r, handovers, d), m, proxy}
}

func localOn(t *testing.T, m *session.Manager, dir string, r place.Request, handovers int, d time.Duration) *Local {
	t.Helper()
	q, err := place.New((*core.Manager)(m), dir)
	expect.NoError(t, err)
	l, err := NewLocal(q, r, LocalConfig{Handovers: handovers, Lazy: d})
	expect.NoError(t, err)
	return l
}

// openPlace is what a Local has in the directory.
type openPlace string

const (
	idle       openPlace = "idle"
	trying     openPlace = "trying"
	contending openPlace = "contending"
	holding    openPlace = "holding"
	keeping    openPlace = "keeping"
)

// in reports what the Local has in the directory.
func (l *Local) in() openPlace {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.trying:
		return trying
	case l.shared != nil:
		return contending
	case l.turn == nil:
		return idle
	}
	if l.turn.Kept() {
		return keeping
	}
	return holding
}

// present returns the turn that the Local has.
func (l *Local) present() *tenure {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turn
}

// pending reports whether the watch on the children of a turn is pending.
func (l *Local) pending(t *tenure) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return t.pending()
}

// wantState waits for the state, which follows an event.
func (l *Local) wantState(t *testing.T, want openPlace) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "the Local's next state", func() bool { return l.in() == want })
}

// forgetHabit makes the next place worth keeping.
func (l *Local) forgetHabit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.habit = habit{}
}

// kept takes the lock and gives it back, until the place is kept. The watch on its node is set. ZooKeeper 3.4 may tell of
// our own node as if another contender had come.
func (p *process) kept(t *testing.T) *place.Lease {
	t.Helper()
	for range 20 {
		l := p.hold(t)
		tokenOf(t, l)
		giveBack(t, l)
		if p.in() == keeping {
			return l
		}
		p.forgetHabit()
	}
	t.Fatal("no place is kept")
	return nil
}

// all matches every request but the connection's own.
func all(r zktest.Request) bool { return r.Path != "" }

// A kept place is used again without a request, by Acquire and by TryAcquire, and is the same for the
// servers.
func TestKeepReuse(t *testing.T) {
	dir := testserver.Path(t)
	p := newKeeper(t, dir, 0)
	l := p.kept(t)
	token, node := tokenOf(t, l), l.Path()
	if p.in() != keeping || !errors.Is(l.Err(), place.ErrReleased) {
		t.Fatalf("state %v, %v", p.in(), l.Err())
	}
	p.proxy.ResetRequests()
	for i := range 100 {
		l, err := p.Acquire(expect.Patient(t))
		if i%2 == 1 {
			expect.NoError(t, err)
			giveBack(t, l)
			l, err = p.TryAcquire(expect.Patient(t))
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
			p, other := newKeeper(t, dir, 0), newProcess(t, dir, place.Request{}, 1)
			giveBack(t, p.hold(t))
			if !inUse {
				giveBack(t, other.hold(t))
				p.wantState(t, idle)
				testserver.WaitChildren(t, dir, 0)
				return
			}
			l := p.hold(t) // again
			turn := p.present()
			w := other.wait(t, 1)
			zktest.Eventually(t, testserver.Patience, "the news", func() bool { return !p.pending(turn) })
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
		p, other := newKeeper(t, dir, most), newProcess(t, dir, place.Request{}, 1)
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
		zktest.Eventually(t, testserver.Patience, "the news", func() bool { return !p.pending(turn) })
		for _, w := range mine[:most] {
			giveBack(t, l)
			l = w.lease(t)
		}
		giveBack(t, l)
		giveBack(t, theirs.lease(t))
		giveBack(t, mine[most].lease(t))
		testserver.WaitChildren(t, dir, 0)
	}
}

// A try of another process gets a lock that is only kept, and finds one busy that is held.
func TestKeepTry(t *testing.T) {
	dir := testserver.Path(t)
	p, other := newKeeper(t, dir, 0), newProcess(t, dir, place.Request{}, 1)
	got := false
	zktest.Eventually(t, testserver.Patience, "a try", func() bool { // a busy machine can be slow to give a place up
		giveBack(t, p.hold(t))
		p.forgetHabit()
		l, err := other.TryAcquire(expect.Patient(t))
		if got = err == nil; got {
			giveBack(t, l)
		}
		testserver.WaitChildren(t, dir, 0)
		return got
	})
	l := p.hold(t)
	if _, err := other.TryAcquire(expect.Patient(t)); !errors.Is(err, place.ErrBusy) {
		t.Errorf("while it is held: %v", err)
	}
	giveBack(t, l)
	testserver.WaitChildren(t, dir, 0)
}

// Two processes that take turns soon keep no places, and keep them again once there is some use in it.
func TestKeepHabit(t *testing.T) {
	dir := testserver.Path(t)
	p, other := newKeeper(t, dir, 0), newProcess(t, dir, place.Request{}, 1)
	var kept []bool
	for range 12 {
		giveBack(t, p.hold(t))
		kept = append(kept, p.in() == keeping)
		giveBack(t, other.hold(t))
		p.wantState(t, idle)
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
	p.wantState(t, idle)
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
	p.wantState(t, idle)
	// The event for the directory follows that for the node. It must not end the next watch.
	zktest.Eventually(t, testserver.Patience, "both events", func() bool { return !p.pending(turn) })
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
	p.wantState(t, idle)
}

// No place is used again after a reconnect: what has come meanwhile is not known.
func TestKeepReconnect(t *testing.T) {
	dir := testserver.Path(t)
	p := newKeeper(t, dir, 0)
	l := p.kept(t)
	p.proxy.Disconnect()
	p.wantState(t, idle)
	next := p.hold(t)
	if next.Path() == l.Path() {
		t.Error("the place was used again")
	}
	testserver.WaitChildren(t, dir, 1)
	turn := p.present()
	p.proxy.Disconnect() // while it is in use
	zktest.Eventually(t, testserver.Patience, "the news", func() bool { return !p.pending(turn) })
	giveBack(t, next)
	testserver.WaitChildren(t, dir, 0)
}

// A place whose session has ended is gone.
func TestKeepSessionLost(t *testing.T) {
	dir := testserver.Path(t)
	p := newKeeper(t, dir, 0)
	l := p.kept(t)
	session := p.present().Holder().Session
	expect.NoError(t, p.proxy.Expire(expect.Patient(t), testserver.Session(t, p.m).ID()))
	p.wantState(t, idle)
	p.forgetHabit() // the end of the node may have been told before that of the session
	next := p.hold(t)
	if next.Path() == l.Path() || p.present().Holder().Session == session {
		t.Error("the place of the old session was used")
	}
	giveBack(t, next)
	testserver.WaitChildren(t, dir, 1)
	expect.NoError(t, p.m.Close())
	testserver.WaitChildren(t, dir, 0)
	if p.in() != idle {
		p.wantState(t, idle)
	}
}

// An acquisition looks itself whether a place that is kept may be used again. Its session knows what has happened, and the
// Local has not acted yet: its mutex is locked meanwhile. Nor was the turn told, unless the session has ended.
func TestKeepLooksFirst(t *testing.T) {
	for what, happen := range map[string]func(p *process, kept *tenure){
		"somebody has come": func(p *process, kept *tenure) {
			other := newProcess(t, p.q.Path(), place.Request{}, 1)
			other.wait(t, 1)
			zktest.Eventually(t, testserver.Patience, "the news", func() bool { return !kept.pending() })
		},
		"the session has ended": func(p *process, kept *tenure) {
			s := testserver.Session(t, p.m)
			expect.NoError(t, p.proxy.Expire(expect.Patient(t), s.ID()))
			<-s.Done()
			kept.watch = seen(core.WatchPending) // as if it were pending
		},
		"the node is gone": func(p *process, kept *tenure) {
			testserver.Delete(t, kept.Holder().Path)
			zktest.Eventually(t, testserver.Patience, "the news", kept.Deleted)
			kept.watch = seen(core.WatchPending)
		},
		"its time is over": func(p *process, kept *tenure) { kept.until = time.Now() },
	} {
		t.Run(what, func(t *testing.T) {
			p := newKeeper(t, testserver.Path(t), 0)
			p.kept(t)
			hear := p.deaf(t)
			taken, gone := func() (*tenure, *place.Turn) {
				p.mu.Lock()
				defer p.mu.Unlock()
				happen(p, p.turn)
				return p.takeLocked()
			}()
			if taken != nil {
				t.Error("the place was used again")
			}
			gone.GiveUp()
			hear()
			p.wantState(t, idle)
		})
	}
}

// A place whose node is gone is neither kept nor shared, although its Local has not been told yet.
func TestKeepNothingLost(t *testing.T) {
	for what, c := range map[string]struct {
		kind *kinds.Kind
		uses func(*process, *tenure) bool
	}{
		"a release": {mutexKind, func(_ *process, t *tenure) bool { return t.PassOn(place.Done) }},
		"a reader": {readKind, func(p *process, _ *tenure) bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			taken, _ := p.takeLocked()
			return taken != nil
		}},
	} {
		t.Run(what, func(t *testing.T) {
			p := keeperOf(t, testserver.Path(t), place.Request{Kind: c.kind}, 0, maxKeep)
			l := p.hold(t)
			tokenOf(t, l) // the watch is set
			turn, hear := p.present(), p.deaf(t)
			testserver.Delete(t, l.Path())
			zktest.Eventually(t, testserver.Patience, "the news", turn.Deleted)
			p.mu.Lock()
			turn.watch = seen(core.WatchPending) // as if it were pending
			p.mu.Unlock()
			if c.uses(p, turn) {
				t.Error("the place is used on")
			}
			hear()
			p.wantState(t, idle)
		})
	}
}

// The end of a watch that another has replaced changes nothing.
func TestKeepOldWatch(t *testing.T) {
	p := newKeeper(t, testserver.Path(t), 0)
	p.kept(t)
	p.present().Intrude(seen(core.WatchChanged))
	if p.in() != keeping {
		t.Errorf("state %v", p.in())
	}
}
