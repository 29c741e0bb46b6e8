package share

import (
	"container/list"
	"context"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// turn is a turn in the queue, and what the goroutines of this process know of it. Turns.mu guards it.
//
// A turn that nobody uses is kept by one rule:
//
//	It is used again only while a watch on the children is pending that was set, on this connection, by a listing that
//	shows our node and nobody whom it keeps waiting.
//
// So a contender of any library ends that: its node is a child. A server that takes the right to read the directory away
// drops the event without a word, so the watch counts for a session timeout and no longer. To keep a turn, to use it again
// and to leave it are each one transition under Turns.mu, in which the clock is asked last. Leaving is never undone.
type turn struct {
	*queue.Turn
	of   *Turns
	stop func()                                                // cancels what follows the end of the turn
	back func(ctx context.Context, used bool) *session.Removal // follows the release of a lease

	holds     int             // leases that have it; 0: it is kept, or has been left
	left      int             // hand-overs that it has left
	disturbed <-chan struct{} // closed once somebody of another process may have come; nil: that is not known
	limit     time.Time       // until then disturbed counts
	used      bool            // it was used again after a release, or joined
	until     time.Time       // while it is kept: when that ends
	followed  bool            // a goroutine follows it
	looks     int             // listings that have set a new watch since a reader came last

	at *list.Element // in keptTurns, which guards it; nil if it is not there
}

// isAlone reports whether nobody of another process has come, as far as the server has told.
func (t *turn) isAlone(now time.Time) bool {
	return t.disturbed != nil && !isClosed(t.disturbed) && now.Before(t.limit)
}

// isUsable reports whether the turn may be used again, or shared.
func (t *turn) isUsable(now time.Time) bool {
	return t.isAlone(now) && (t.holds > 0 || now.Before(t.until)) && !t.IsLast() && t.Err() == nil // the clock comes last
}

// isClosed reports whether a channel is closed. A nil one is not.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// beginLocked begins a turn that so many hold.
func (s *Turns) beginLocked(granted *queue.Turn, holds int) *turn {
	t := &turn{Turn: granted, of: s, holds: holds, left: s.handovers, disturbed: granted.Undisturbed()}
	t.limit = granted.Entered().Add(granted.Session().Timeout())
	t.back = func(ctx context.Context, used bool) *session.Removal { return s.release(ctx, t, used) }
	t.stop = granted.AfterEnd(func() { s.lost(t) })
	if s.turn == nil && s.acquiring == nil { // otherwise a reader that tries has a turn of its own
		s.turn = t
		if s.readers && t.disturbed != nil {
			s.followLocked(t)
		}
	}
	return t
}

// useAgainLocked returns the turn that is kept, or that readers hold, with one more hold, or nil if there is none to be used.
func (s *Turns) useAgainLocked() *turn {
	t := s.turn
	if t == nil || t.holds > 0 && !s.readers || !t.isUsable(time.Now()) {
		return nil
	}
	t.holds++
	t.used, t.looks = true, 0
	s.habit = habit{}
	return t
}

// closeLocked ends what a newcomer must not share or use again: a turn that is kept, or that of readers, who go on without
// newcomers. It reports whether it has left a turn, and so has unlocked mu meanwhile.
func (s *Turns) closeLocked(ctx context.Context) (left bool) {
	switch t := s.turn; {
	case t == nil || s.awaitsLookLocked(t):
	case t.holds == 0:
		s.leaveLocked(ctx, t, isClosed(t.disturbed))
		return true
	case s.readers:
		s.turn = nil
	}
	return false
}

// release follows the release of a lease: the turn is handed over, kept or left. used is false if the hold was of no use: then
// the turn is not kept.
func (s *Turns) release(ctx context.Context, t *turn, used bool) *session.Removal {
	s.mu.Lock()
	defer s.unlock()
	if t.holds--; t.holds > 0 {
		return nil
	}
	now := time.Now()
	alone := t.isAlone(now) || s.awaitsLookLocked(t) // readers are about to list, and see newcomers
	waits := s.waiting.Len() > 0 && !s.readers
	switch {
	case s.turn != t || t.IsLast() || t.Err() != nil: // newcomers do not share it any more; the clock comes last
	case waits && (alone || t.left > 0):
		if !alone {
			t.left--
		}
		s.admitLocked(t, again)
		t.WatchNow()
		return nil
	case !waits && alone && used:
		t.until = now.Add(s.keep)
		s.followLocked(t)
		if beyond := keptTurns.add(t); beyond != nil {
			s.mu.Unlock() // no two Turns.mu are locked together
			beyond.of.giveUp(beyond)
			s.mu.Lock()
		}
		return nil
	}
	return s.leaveLocked(ctx, t, false)
}

// leaveLocked leaves a turn, as sendLeaveLocked does. taken says that the turn was kept until somebody of another process has
// come, or until it was lost, which ends the watch too.
func (s *Turns) leaveLocked(ctx context.Context, t *turn, taken bool) *session.Removal {
	if s.turn == t {
		s.turn = nil
	}
	t.stop()
	if taken && !t.used && t.Err() == nil {
		s.habit.takenAway(t.until)
		time.AfterFunc(time.Until(t.until), func() { // it is forgotten
			s.mu.Lock()
			s.unlock()
		})
	}
	keptTurns.remove(t)
	return s.sendLeaveLocked(ctx, t.Turn)
}

// sendLeaveLocked leaves a turn that is not s.turn any more, and then acquires another one for those that wait: behind the
// delete, so that there is room for its node. mu is unlocked meanwhile, since the delete calls hooks.
func (s *Turns) sendLeaveLocked(ctx context.Context, t *queue.Turn) *session.Removal {
	s.leaving++
	s.mu.Unlock()
	defer func() { // also if a hook panics
		s.mu.Lock()
		s.leaving--
		s.contendLocked()
	}()
	return t.Leave(ctx)
}

// lost follows the loss of a turn. It does not concern those that wait: they get another one.
func (s *Turns) lost(t *turn) {
	s.mu.Lock()
	defer s.unlock()
	keptTurns.remove(t)
	if s.turn == t {
		s.turn = nil
	}
	s.contendLocked()
}

// GiveUpKept gives up the turn that is kept, if there is one. It is for a contender of this process that the turn would keep
// waiting: to give it up is quicker than to wait for the event.
func (s *Turns) GiveUpKept() { s.giveUp(nil) }

// giveUp leaves the turn that is kept. If beyond is not nil, there was room for no more turns, and another one stays.
func (s *Turns) giveUp(beyond *turn) {
	s.mu.Lock()
	defer s.unlock()
	if t := s.turn; t != nil && t.holds == 0 && (beyond == nil || t == beyond) {
		s.leaveLocked(context.Background(), t, beyond == nil)
	}
}

// followLocked has one goroutine follow a turn. It gives up a kept turn when a contender of another process comes, or when the
// time of the turn is over. For readers it first lists who has come, also while they hold. Other holds have no such goroutine:
// their release sees that somebody has come.
func (s *Turns) followLocked(t *turn) {
	if !t.followed {
		t.followed = true
		go s.follow(t, t.rest(time.Now()))
	}
}

func (s *Turns) follow(t *turn, after time.Duration) {
	timer := time.NewTimer(after)
	defer timer.Stop()
	for after > 0 {
		s.mu.Lock()
		disturbed := t.disturbed
		s.mu.Unlock()
		select {
		case <-disturbed:
		case <-t.Last():
		case <-timer.C:
		case <-t.Done():
			return
		}
		after = s.tend(t)
		timer.Reset(after)
	}
}

// tend does what followLocked says, and returns after what time to do so again: 0 means never.
func (s *Turns) tend(t *turn) (again time.Duration) {
	s.mu.Lock()
	defer s.unlock()
	if s.turn == t && s.awaitsLookLocked(t) {
		s.lookLocked(t)
	}
	now := time.Now()
	alone, last := t.isAlone(now), t.IsLast()
	left := min(t.until.Sub(now), t.limit.Sub(now))
	switch {
	case s.turn != t:
	case s.awaitsLookLocked(t): // others have come and gone since
		return t.rest(now)
	case t.holds > 0 && !s.readers:
		t.followed = false // until it is kept again
	case t.holds > 0 && alone && !last:
		return t.rest(now)
	case t.holds > 0:
		s.turn = nil // for those that hold
	case alone && !last && left > 0:
		return left
	default:
		s.leaveLocked(context.Background(), t, !last && !alone && left > 0)
	}
	s.contendLocked()
	return 0
}

// rest returns after what time a turn that is in use, or has just been released, can have been kept for too long.
func (t *turn) rest(now time.Time) time.Duration {
	return max(min(t.of.keep, t.limit.Sub(now)), time.Millisecond) // readers who hold for long must not keep a goroutine busy
}

// maxLooks is how often readers list again before another reader of this process comes: others that come and go cost a turn
// that nobody uses no more than that.
const maxLooks = 16

// awaitsLookLocked reports whether readers are about to list again. Other readers come and go beside them, and only writers
// matter. So when the watch on the children ends, they list with a new one. Until that is answered, newcomers wait.
func (s *Turns) awaitsLookLocked(t *turn) bool {
	return s.readers && isClosed(t.disturbed) && !t.IsLast()
}

// lookLocked lists again, and admits those that wait if no writer has come by then. If one has, they wait no longer for this
// turn. mu is unlocked meanwhile.
func (s *Turns) lookLocked(t *turn) {
	if t.looks++; t.looks > maxLooks {
		t.disturbed = nil
		return
	}
	s.mu.Unlock()
	asked := time.Now()
	disturbed := t.LookAround()
	s.mu.Lock()
	t.disturbed, t.limit = disturbed, asked.Add(t.Session().Timeout())
	switch {
	case s.turn != t || s.waiting.Len() == 0:
		return
	case !t.isUsable(time.Now()):
		t.disturbed = nil
		return
	}
	t.used, t.looks = true, 0
	s.admitLocked(t, again)
}
