package hold

import (
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The holder finds out that the session or the node is lost. The waiters get another turn, whatever
// the holder does.
func TestLocalLoss(t *testing.T) {
	for _, c := range []struct {
		what string
		lose func(t *testing.T, p *process, l *place.Lease)
	}{
		{"session", func(t *testing.T, p *process, _ *place.Lease) {
			expect.NoError(t, p.proxy.Expire(expect.Patient(t), testserver.Session(t, p.m).ID()))
		}},
		{"node", func(t *testing.T, _ *process, l *place.Lease) { testserver.Delete(t, l.Path()) }},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := testserver.Path(t)
			p := newProcess(t, dir, place.Request{}, 10)
			first := p.hold(t)
			second, third := p.wait(t, 1), p.wait(t, 2)
			giveBack(t, first)
			l := second.lease(t)
			token := tokenOf(t, l)
			c.lose(t, p, l)
			lostBy(t, l)
			next := third.lease(t)
			if tokenOf(t, next) <= token {
				t.Errorf("token %d after %d", tokenOf(t, next), token)
			}
			last := p.wait(t, 1)
			if err := l.Release(expect.Patient(t), place.Done); !errors.Is(err, session.ErrLost) {
				t.Errorf("Release of what was lost: %v", err)
			}
			if next.Err() != nil || !errors.Is(first.Err(), place.ErrReleased) {
				t.Errorf("the next: %v, the first: %v", next.Err(), first.Err())
			}
			giveBack(t, next)
			giveBack(t, last.lease(t))
			testserver.WaitChildren(t, dir, 0)
		})
	}
}

// A turn that is known to be lost is not handed over, although it has not been told.
func TestLocalPassesNothingLost(t *testing.T) {
	dir := testserver.Path(t)
	p := newProcess(t, dir, place.Request{}, 10)
	l := p.hold(t)
	tokenOf(t, l) // the watch is set
	w := p.wait(t, 1)
	standing := p.present()
	if !standing.Stands() {
		t.Fatal("a lease that is held is not known to be")
	}
	hear := p.deaf(t)
	testserver.Delete(t, l.Path())
	zktest.Eventually(t, testserver.Patience, "the news", standing.Deleted)
	if standing.PassOn(place.Done) {
		t.Error("a turn whose node is gone was passed on")
	}
	hear()
	giveBack(t, w.lease(t))
	testserver.WaitChildren(t, dir, 0)
}
