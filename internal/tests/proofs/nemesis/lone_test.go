//go:build linux

package nemesis

import (
	"context"
	"time"
)

// When all contenders rest, those for locks that can refuse take them once more, one after another. Nobody
// else has the lock or wants it then, so no refusal is right.

// loner is a contender for a lock that can refuse.
type loner interface {
	// sole returns the ways to take the lock, none of which is refused if nobody else has it or wants it.
	sole() []func(context.Context) (hold, error)
}

// alone takes a lock that can refuse when it is called for that. All others rest then.
func (w *hand) alone() error {
	l, ok := w.lock.(loner)
	if !ok {
		return nil
	}
	for w.end.Err() == nil {
		a, err := w.register.ask("called %d", w.seat)
		if err != nil {
			return err
		}
		if a.no {
			pause(w.end, 50*time.Millisecond)
			continue
		}
		w.lone = true
		for _, acquire := range l.sole() {
			w.turn = w.book.turn()
			if err := w.take(w.end, acquire); err != nil {
				return err
			}
		}
		_, err = w.register.ask("done %d", w.seat)
		return err
	}
	return nil
}

// alone has each contender of some locks take it when all others rest, one after another.
func (s *site) alone(all []*outcome, within time.Duration) {
	s.t.Helper()
	for i, g := range s.targets {
		if !g.lone || all[i].orphans > 0 || g.register.restless() > 0 {
			continue
		}
		for seat := range workers * g.hands {
			g.register.call(seat)
			if !eventually(within, func() bool { return !g.register.calls() }) {
				all[i].fault("worker %d does not take the lock when all others rest", seat/g.hands)
				break
			}
			if s.left(g, 0, within) > 0 {
				break // which is told of at the end
			}
		}
	}
}

// call has a seat take the lock alone, when all rest.
func (r *register) call(seat int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.called = seat
}

// calls reports whether a seat is still to take the lock alone.
func (r *register) calls() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.called >= 0
}
