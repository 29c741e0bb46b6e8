package place

import (
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// The holder finds out that the session or the node is lost. The waiters get another turn, whatever
// the holder does.
func TestLocalLoss(t *testing.T) {
	for _, c := range []struct {
		what string
		lose func(t *testing.T, p *process, l *Lease)
	}{
		{"session", func(t *testing.T, p *process, _ *Lease) {
			noError(t, p.proxy.Expire(patience(t), testserver.Session(t, p.m).ID()))
		}},
		{"node", func(t *testing.T, _ *process, l *Lease) { testserver.Delete(t, l.Path()) }},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := testserver.Path(t)
			p := newProcess(t, dir, Request{}, 10)
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
			if err := l.Release(patience(t), Done); !errors.Is(err, session.ErrLost) {
				t.Errorf("Release of what was lost: %v", err)
			}
			if next.Err() != nil || !errors.Is(first.Err(), ErrReleased) {
				t.Errorf("the next: %v, the first: %v", next.Err(), first.Err())
			}
			giveBack(t, next)
			giveBack(t, last.lease(t))
			testserver.WaitChildren(t, dir, 0)
		})
	}
}

// A turn that is known to be lost is not handed over: lost by the clock, or by an event that the guard
// has not received yet.
func TestLocalPassesNothingLost(t *testing.T) {
	dir := testserver.Path(t)
	p := newProcess(t, dir, Request{}, 10)
	l := p.hold(t)
	tokenOf(t, l) // the watch is set
	w := p.wait(t, 1)
	standing := l.t
	if !standing.stands() {
		t.Fatal("a lease that is held is not known to be")
	}
	standing.mu.Lock()
	own := standing.own
	testserver.Delete(t, l.Path()) // the guard cannot tell anybody
	wake := make(chan struct{}, 1)
	stop := own.Notify(wake)
	<-wake
	stop()
	standing.mu.Unlock()
	if standing.stands() || p.passOn(standing, Done) {
		t.Error("a turn whose node is gone was passed on")
	}
	giveBack(t, w.lease(t))
	testserver.WaitChildren(t, dir, 0)
}
