package hold

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// The place of a lease that nobody has used is not kept. That says nothing about the next one.
func TestUnwantedIsNotKept(t *testing.T) {
	dir := testserver.Path(t)
	p := newKeeper(t, dir, 0)
	p.kept(t) // taken again, and then not used
	p.unwanted(t, p.hold(t))
	if p.in() != idle {
		t.Errorf("state %v", p.in())
	}
	testserver.WaitChildren(t, dir, 0)
	p.unwanted(t, p.hold(t))
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
	p.unwanted(t, first)
	second := next.lease(t)
	if second.Path() != first.Path() {
		t.Errorf("not handed over: %s, then %s", first.Path(), second.Path())
	}
	p.unwanted(t, second)
	giveBack(t, last.lease(t))
	if p.in() != keeping {
		t.Errorf("state %v", p.in())
	}
}

// Of readers that share a place, the last one decides: it is kept after a use.
func TestUnwantedByReader(t *testing.T) {
	for _, lastUses := range []bool{false, true} {
		dir := testserver.Path(t)
		p := keeperOf(t, dir, place.Request{Kind: readKind}, 0, maxKeep)
		one, other := p.hold(t), p.hold(t)
		if lastUses {
			p.unwanted(t, one)
			giveBack(t, other)
			if p.in() != keeping {
				t.Errorf("state %v", p.in())
			}
			continue
		}
		giveBack(t, one)
		p.unwanted(t, other)
		if p.in() != idle {
			t.Errorf("state %v", p.in())
		}
		testserver.WaitChildren(t, dir, 0)
	}
}

// unwanted gives back a lease that nobody has used.
func (p *process) unwanted(t *testing.T, l *place.Lease) {
	t.Helper()
	expect.NoError(t, l.Release(expect.Patient(t), place.Unwanted))
}
