package place

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
)

// passOn follows the release of a lease. It gives the turn to the next waiter, or keeps its place if the
// last holder has used it. It returns false if the turn is over, or has to end.
//
// A hand-over counts only if others may have come. That the turn stands is asked last, because it
// goes by the clock.
func (l *Local) passOn(t *turn, end End) bool {
	l.mu.Lock()
	t.tenure.leases--
	if t.tenure.leases > 0 { // other readers hold
		l.mu.Unlock()
		return true
	}
	now := time.Now()
	undisturbed := t.tenure.undisturbed(now)
	if l.many || l.waiting.Len() == 0 {
		defer l.mu.Unlock()
		if end == Unwanted || l.turn != t || !undisturbed && !t.tenure.setting || !t.stands() {
			return false
		}
		return l.keepLocked(now)
	}
	if l.turn != t || l.left == 0 && !undisturbed || !t.stands() {
		l.mu.Unlock()
		return false
	}
	if !undisturbed {
		l.left--
	}
	if _, ok := t.step(decide.Passed); !ok {
		l.mu.Unlock()
		return false
	}
	w := l.waiting.next()
	t.tenure.leases++
	l.mu.Unlock()
	t.watchNow()
	t.passTo([]*waiter{w})
	return true
}

// keepLocked begins to keep the place of the turn. It returns false if the turn is over.
func (l *Local) keepLocked(now time.Time) bool {
	t := l.turn
	if _, ok := t.step(decide.Kept); !ok {
		return false
	}
	t.tenure.keep(now, l.lazy)
	t.tenure.keptAt.Store(now.UnixNano())
	if !l.ticking {
		l.tickLocked(t.tenure.until.Sub(now))
	}
	return true
}

// tickLocked calls expire after d. The timer goes on while the place is used, so that a release need not
// set it.
func (l *Local) tickLocked(d time.Duration) {
	l.ticking = true
	if l.timer == nil {
		l.timer = time.AfterFunc(d, l.expire)
		return
	}
	l.timer.Reset(d)
}

// expire gives up the place that is kept if its time is over.
func (l *Local) expire() {
	l.mu.Lock()
	l.ticking = false
	var gone *turn
	if l.turn != nil && l.turn.is() == decide.Keeping {
		if left := time.Until(l.turn.tenure.until); left > 0 {
			l.tickLocked(left)
		} else {
			gone = l.leaveLocked()
		}
	}
	unused := !l.ticking
	l.mu.Unlock()
	gone.giveUp()
	if unused {
		l.tellUnused()
	}
}

// intrude follows the end of the watch w on the children: another contender may have come. It gives up
// the place if it is kept. The place of readers is listed again first, since the contender may be
// another reader.
func (l *Local) intrude(t *turn, w *core.Watch) {
	changed := w.Event() == core.WatchChanged && !t.deleted()
	l.mu.Lock()
	if l.turn != t || t.tenure.watch != w {
		l.mu.Unlock()
		return
	}
	setAgain := changed && l.startSettingLocked(t)
	l.mu.Unlock()
	switch {
	case setAgain:
		go l.setAgain(t)
	case !l.giveUpKept(t, changed):
		t.watchNow() // the event may be for our own node, which an operator has deleted
	}
}

// giveUpKept gives up the place of a turn if it is kept, and reports whether it was. taken says that
// another contender wants it.
func (l *Local) giveUpKept(t *turn, taken bool) bool {
	l.mu.Lock()
	if l.turn != t || t.is() != decide.Keeping {
		l.mu.Unlock()
		return false
	}
	if taken {
		l.habit.takenAway(t.tenure.used)
	}
	gone := l.leaveLocked()
	l.mu.Unlock()
	gone.giveUp()
	return true
}

// leaveLocked leaves the place that is kept, and returns its turn, which the caller gives up once it
// has unlocked. Nobody can use the place again.
func (l *Local) leaveLocked() *turn {
	t := l.turn
	l.turn = nil
	t.s.Leaving(t.path) // first, so that the place is at all times known to be kept, or to leave
	t.tenure.keptAt.Store(0)
	l.contendLocked(&sharedContender{}) // for readers that wait for the watch
	return t
}

// makeLast makes the present hold the last one of its turn.
func (l *Local) makeLast(t *turn) {
	l.mu.Lock()
	if l.turn == t {
		l.left, t.tenure.last = 0, true
	}
	l.mu.Unlock()
	l.giveUpKept(t, false)
}

// turnOver ends the turn. If others wait, it starts a shared contender for them, and returns a
// channel that is closed when that has its place in the queue. Otherwise it returns nil.
func (l *Local) turnOver(t *turn) (placed <-chan struct{}) {
	defer l.tellUnused()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn != t {
		return nil // it was over already
	}
	l.turn = nil
	l.contendLocked(&sharedContender{before: t})
	if l.shared == nil {
		return nil
	}
	return l.shared.placed.Wait()
}
