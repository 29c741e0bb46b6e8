package hold

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/place"
)

// PassOn follows the release of a lease. It gives the turn to the next waiter, or keeps its place if the
// last holder has used it. It returns false if the turn is over, or has to end.
//
// A hand-over counts only if others may have come. That the turn stands is asked last, because it
// goes by the clock.
func (t *tenure) PassOn(end place.End) bool {
	l := t.of
	l.mu.Lock()
	t.leases--
	if t.leases > 0 { // other readers hold
		l.mu.Unlock()
		return true
	}
	now := time.Now()
	undisturbed := t.undisturbed(now)
	if l.many || l.waiting.Len() == 0 {
		defer l.mu.Unlock()
		if end == place.Unwanted || l.turn != t || !undisturbed && !t.setting || !t.Stands() {
			return false
		}
		return l.keepLocked(now)
	}
	if l.turn != t || l.left == 0 && !undisturbed || !t.Stands() {
		l.mu.Unlock()
		return false
	}
	if !undisturbed {
		l.left--
	}
	if !t.Pass() {
		l.mu.Unlock()
		return false
	}
	w := l.waiting.next()
	t.leases++
	l.mu.Unlock()
	t.WatchNow()
	t.passTo([]*waiter{w})
	return true
}

// keepLocked begins to keep the place of the turn. It returns false if the turn is over.
func (l *Local) keepLocked(now time.Time) bool {
	t := l.turn
	if !t.Keep(now) {
		return false
	}
	t.keepFor(now, l.lazy)
	if !l.ticking {
		l.tickLocked(t.until.Sub(now))
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
	var gone *place.Turn
	if l.turn != nil && l.turn.Kept() {
		if left := time.Until(l.turn.until); left > 0 {
			l.tickLocked(left)
		} else {
			gone = l.leaveLocked()
		}
	}
	unused := !l.ticking
	l.mu.Unlock()
	gone.GiveUp()
	if unused {
		l.tellUnused()
	}
}

// Intrude follows the end of the watch w on the children: another contender may have come. It gives up
// the place if it is kept. The place of readers is listed again first, since the contender may be
// another reader.
func (t *tenure) Intrude(w *core.Watch) {
	l := t.of
	changed := w.Event() == core.WatchChanged && !t.Deleted()
	l.mu.Lock()
	if l.turn != t || t.watch != w {
		l.mu.Unlock()
		return
	}
	setAgain := changed && l.startSettingLocked(t)
	l.mu.Unlock()
	switch {
	case setAgain:
		go l.setAgain(t)
	case !t.GiveUpKept(changed):
		t.WatchNow() // the event may be for our own node, which an operator has deleted
	}
}

// GiveUpKept gives up the place of a turn if it is kept, and reports whether it was. taken says that
// another contender wants it.
func (t *tenure) GiveUpKept(taken bool) bool {
	l := t.of
	l.mu.Lock()
	if l.turn != t || !t.Kept() {
		l.mu.Unlock()
		return false
	}
	if taken {
		l.habit.takenAway(t.used)
	}
	gone := l.leaveLocked()
	l.mu.Unlock()
	gone.GiveUp()
	return true
}

// leaveLocked leaves the place that is kept, and returns its turn, which the caller gives up once it
// has unlocked. Nobody can use the place again.
func (l *Local) leaveLocked() *place.Turn {
	t := l.turn
	l.turn = nil
	t.Forgo()
	l.contendLocked(&sharedContender{}) // for readers that wait for the watch
	return t.Turn
}

// MakeLast makes the present hold the last one of its turn.
func (t *tenure) MakeLast() {
	l := t.of
	l.mu.Lock()
	if l.turn == t {
		l.left, t.last = 0, true
	}
	l.mu.Unlock()
	t.GiveUpKept(false)
}

// TurnOver ends the turn. If others wait, it starts a shared contender for them, and returns a
// channel that is closed when that has its place in the queue. Otherwise it returns nil.
func (t *tenure) TurnOver() (placed <-chan struct{}) {
	l := t.of
	defer l.tellUnused()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn != t {
		return nil // it was over already
	}
	l.turn = nil
	l.contendLocked(&sharedContender{before: t.Turn})
	if l.shared == nil {
		return nil
	}
	return l.shared.Placed.Wait()
}
