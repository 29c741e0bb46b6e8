package place

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// aSharer keeps each place for good.
type aSharer struct{ turn *Turn }

func (s *aSharer) PassOn(End) bool           { return s.turn.Keep(time.Now()) }
func (s *aSharer) TurnOver() <-chan struct{} { return nil }
func (s *aSharer) MakeLast()                 {}
func (s *aSharer) Intrude(*core.Watch)       {}
func (s *aSharer) GiveUpKept(bool) bool      { s.turn.Forgo(); s.turn.GiveUp(); return true }

// keeps returns a turn whose place is kept.
func (p *process) keeps(t *testing.T) *Turn {
	t.Helper()
	r := p.r
	expect.NoError(t, r.HandOn())
	g := p.q.Acquisition(expect.Patient(t), &r, &Entry{Lazy: true})
	expect.NoError(t, g.Granted())
	by := &aSharer{}
	by.turn = g.Turn(by)
	by.turn.Guard()
	giveBack(t, by.turn.Begin(expect.Patient(t)))
	return by.turn
}

// A place that is kept is known until it is given up, and then is used no more.
func TestKeptIsKnown(t *testing.T) {
	p := newProcess(t, testserver.Path(t), Request{})
	turn := p.keeps(t)
	if n := len(held.lazyAt(turn.s, p.q.dir)); !turn.Kept() || n != 1 || held.oldestKept(turn.s) != turn {
		t.Errorf("%d turns are known, state %v", n, turn.is())
	}
	if !turn.Use() || turn.Kept() || held.oldestKept(turn.s) != nil {
		t.Error("a place that is used again counts as kept")
	}
	if !turn.Keep(time.Now()) {
		t.Error("it is not kept again")
	}
	p.q.yield(turn.s, turn.r)
	if n := len(held.lazyAt(turn.s, p.q.dir)); n != 0 || turn.is() != decide.Left || turn.Use() || turn.Keep(time.Now()) || turn.Pass() {
		t.Errorf("%d turns are known, state %v", n, turn.is())
	}
	if n := held.lazy.Load(); n != 0 {
		t.Errorf("%d turns are counted", n)
	}
	testserver.WaitChildren(t, p.q.dir, 0)
}

// From the moment at which a place is kept no more its room is on its way, also before its delete is.
func TestForgoneIsLeaving(t *testing.T) {
	p := newProcess(t, testserver.Path(t), Request{})
	turn := p.keeps(t)
	if turn.s.IsLeaving(turn.path) {
		t.Error("the room of a kept place is on its way")
	}
	turn.Forgo()
	if !turn.s.IsLeaving(turn.path) || held.oldestKept(turn.s) != nil {
		t.Error("a place that was given up counts as kept, or its room is not on its way")
	}
	turn.GiveUp()
	testserver.WaitChildren(t, p.q.dir, 0)
}

// Whether a turn stands is known as soon as the clock or the servers have told, although the turn has not been.
func TestStands(t *testing.T) {
	for what, end := range map[string]func(*process, *Turn){
		"the session has ended": func(p *process, turn *Turn) {
			expect.NoError(t, p.proxy.Expire(expect.Patient(t), turn.s.ID()))
			<-turn.s.Done()
		},
		"the node is gone": func(_ *process, turn *Turn) {
			testserver.Delete(t, turn.path)
			zktest.Eventually(t, testserver.Patience, "the news", turn.Deleted)
		},
	} {
		p := newProcess(t, testserver.Path(t), Request{})
		l := p.hold(t)
		tokenOf(t, l) // the watch is set
		turn := l.t
		if !turn.Stands() {
			t.Fatal("a lease that is held is not known to be")
		}
		turn.mu.Lock()
		stop := turn.stopNode
		turn.mu.Unlock()
		stop()
		held.remove(turn, 0)
		end(p, turn)
		if turn.ended() != nil || turn.Stands() {
			t.Errorf("%s: stands %v, although the turn was not told: %v", what, turn.Stands(), turn.ended())
		}
		turn.retire(turn.ctx, turn.s.Remove)
	}
}
