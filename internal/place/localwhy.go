package place

import "time"

// why says why a waiter has to wait, or returns "" if that is not known.
func (l *Local) why(w *waiter, now time.Time) string {
	v, asks, text := l.situation(w, now)
	if asks {
		return l.q.why(v, now) // not under l.mu: it asks the manager and its connection, which have mutexes of their own
	}
	return text
}

// situation returns what a waiter waits for: a contender that asks the servers, with what that knows, or this process.
func (l *Local) situation(w *waiter, now time.Time) (v *view, asks bool, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case w.in.by != nil:
		return w.in.by.view.Load(), true, ""
	case l.trying, l.turn != nil && l.turn.tenure.setting:
		return nil, true, "" // for the answer to a listing: the readers that hold are not in the way
	case l.turn != nil:
		since := l.turn.heldSince()
		if since.IsZero() {
			return nil, false, "held by this process"
		}
		return nil, false, "held by this process for " + short(now.Sub(since))
	}
	return nil, false, ""
}
