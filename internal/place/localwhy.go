package place

import (
	"time"

	"github.com/turnstile-go/turnstile/kinds"
)

// why says why a waiter has to wait.
func (l *Local) why(w *waiter, now time.Time) kinds.WaitError {
	v, asks, reason := l.situation(w, now)
	if asks {
		return l.q.why(v, now) // not under l.mu: it asks the manager and its connection, which have mutexes of their own
	}
	return reason
}

// situation returns what a waiter waits for: a contender that asks the servers, with what that knows, or this process.
func (l *Local) situation(w *waiter, now time.Time) (v *view, asks bool, reason kinds.WaitError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case w.in.by != nil:
		return w.in.by.view.Load(), true, reason
	case l.trying, l.turn != nil && l.turn.tenure.setting:
		return nil, true, reason // for the answer to a listing: the readers that hold are not in the way
	case l.turn != nil:
		t := l.turn
		reason.Reason = "held by this process"
		reason.Ahead = kinds.Contender{Path: t.path, Sequence: t.node.Sequence, Session: t.s.ID(), Holder: true, Own: true}
		if since := t.heldSince(); !since.IsZero() {
			reason.Reason += " for " + short(now.Sub(since))
			reason.Ahead.HeldSince = since
		}
	}
	return nil, false, reason
}
