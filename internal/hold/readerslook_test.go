package hold

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// While readers list again, because a reader of another process has come, they keep their place, and those that come
// wait for the listing and then share it.
func TestReadersWaitForTheirLook(t *testing.T) {
	for what, c := range map[string]struct {
		before func(*testing.T, *process, *place.Lease) // the listing
		within func(*testing.T, *process, *place.Lease) // while it is under way
	}{
		"held": {nothing, nothing},
		"released meanwhile": {nothing, func(t *testing.T, p *process, l *place.Lease) {
			giveBack(t, l)
			p.wantState(t, keeping)
		}},
		"kept": {func(t *testing.T, _ *process, l *place.Lease) { giveBack(t, l) }, nothing},
	} {
		t.Run(what, func(t *testing.T) {
			p, others := readers(t)
			mine := p.hold(t)
			tokenOf(t, mine) // the watches are set
			c.before(t, p, mine)
			list := p.proxy.HoldRequest(zktest.On(zktest.OpGetChildren2, p.q.Path()))
			theirs, err := others.Acquire(expect.Patient(t))
			expect.NoError(t, err)
			<-list.Hit()
			c.within(t, p, mine)
			w := p.wait(t, 1)
			list.Release()
			l := w.lease(t)
			if l.Path() != mine.Path() {
				t.Errorf("%s, behind %s: it has made a place of its own", l.Path(), mine.Path())
			}
			giveBack(t, l)
			giveBack(t, theirs)
			_ = mine.Release(expect.Patient(t), place.Done)
		})
	}
}

// Readers that wait for a listing do not share the place when that may not be shared by then. They do not wait for
// another listing either.
func TestReadersGoOnAfterTheirLook(t *testing.T) {
	for what, c := range map[string]struct {
		event  core.WatchEvent
		before func(*testing.T, *process, *place.Lease)
	}{
		"another has come since": {core.WatchChanged, nothing},
		"the node is gone": {core.WatchPending, func(t *testing.T, p *process, l *place.Lease) {
			p.deaf(t) // the turn does not hear of it
			testserver.Delete(t, l.Path())
			zktest.Eventually(t, testserver.Patience, "the news", p.turn.Deleted)
		}},
	} {
		t.Run(what, func(t *testing.T) {
			p, _ := readers(t)
			mine := p.hold(t)
			tokenOf(t, mine)
			turn := p.turn
			c.before(t, p, mine)
			p.mu.Lock()
			turn.setting, turn.watch = true, seen(core.WatchChanged)
			p.mu.Unlock()
			w := p.wait(t, 1)
			p.endSetting(turn, seen(c.event), true)
			l := w.lease(t)
			if l.Path() == mine.Path() {
				t.Error("it shares the place")
			}
			giveBack(t, l)
			_ = mine.Release(expect.Patient(t), place.Done)
		})
	}
}

// nothing happens.
func nothing(*testing.T, *process, *place.Lease) {}

// readers returns the readers of two processes, which keep their places.
func readers(t *testing.T) (*process, *Local) {
	t.Helper()
	dir := testserver.Path(t)
	p := keeperOf(t, dir, place.Request{Kind: readKind}, 0, maxKeep)
	return p, localOn(t, testserver.Connect(t, testserver.Server(t).Addr(0)), dir, place.Request{Kind: readKind}, 0, maxKeep)
}
