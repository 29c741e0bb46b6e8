package share

import (
	"container/list"
	"context"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// turn is a turn in the queue. Turns.mu guards what the goroutines of this process know of it.
//
// A turn that nobody uses is kept by one rule:
//
//	It is used again only while a watch on the children is pending that was set, on this connection, by a listing that
//	shows our node and nobody whom it keeps waiting.
//
// A contender of any library ends that: its node is a child. The watch counts for a session timeout: see Undisturbed
// of [queue.Turn]. To keep a turn, to use it again and to leave it are each one transition under Turns.mu, in which
// the clock is asked last. Leaving is never undone.
type turn struct {
	*queue.Turn
	of   *Turns
	stop func()
	back func(ctx context.Context, used bool) *session.Removal

	holds     int             // leases; 0: kept, or left
	left      int             // hand-overs that remain once others wait
	disturbed <-chan struct{} // closed once somebody of another process may have come; nil: not known
	limit     time.Time       // until then disturbed counts
	used      bool            // it was used again, or joined, since it began
	until     time.Time       // of being kept
	followed  bool            // a goroutine follows it
	looks     int             // listings since a reader came last

	at *list.Element // in keptTurns, which guards it
}

// isAlone reports whether nobody of another process has come.
func (t *turn) isAlone(now time.Time) bool {
	return t.disturbed != nil && !isClosed(t.disturbed) && now.Before(t.limit)
}

func (t *turn) isUsable(now time.Time) bool {
	return t.isAlone(now) && (t.holds > 0 || now.Before(t.until)) && !t.IsLast() && t.Err() == nil // the clock comes last
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (s *Turns) beginLocked(granted *queue.Turn, holds int) *turn {
	t := &turn{Turn: granted, of: s, holds: holds, left: s.handovers, disturbed: granted.Undisturbed()}
	t.limit = granted.Entered().Add(granted.Session().Timeout())
	t.back = func(ctx context.Context, used bool) *session.Removal { return s.release(ctx, t, used) }
	t.stop = granted.AfterEnd(func() { s.lost(t) })
	if s.turn == nil && s.acquiring == nil { // otherwise a reader that tries has its own
		s.turn = t
		if s.readers && t.disturbed != nil {
			s.followLocked(t)
		}
	}
	return t
}

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

// closeLocked ends what a newcomer must not use: a kept turn, or that of readers, who go on without newcomers. If it
// returns true, mu was unlocked meanwhile.
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

// release hands the turn over, keeps it or leaves it. used is false if no caller has got the lease: then it is not kept.
func (s *Turns) release(ctx context.Context, t *turn, used bool) *session.Removal {
	s.mu.Lock()
	defer s.unlock()
	if t.holds--; t.holds > 0 {
		return nil
	}
	now := time.Now()
	alone := t.isAlone(now) || s.awaitsLookLocked(t) // readers are about to list
	waits := s.waiting.Len() > 0 && !s.readers
	switch {
	case s.turn != t || t.IsLast() || t.Err() != nil: // newcomers do not share it
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

// leaveLocked leaves a turn. taken says that a kept turn has ended by another contender, or perhaps by its loss.
func (s *Turns) leaveLocked(ctx context.Context, t *turn, taken bool) *session.Removal {
	if s.turn == t {
		s.turn = nil
	}
	t.stop()
	if taken && !t.used && t.Err() == nil {
		s.habit.takenAway(t.until)
		time.AfterFunc(time.Until(t.until), func() { // the habit can be forgotten
			s.mu.Lock()
			s.unlock()
		})
	}
	keptTurns.remove(t)
	return s.sendLeaveLocked(ctx, t.Turn)
}

// sendLeaveLocked leaves a turn that is not s.turn any more, and then acquires another one for those that wait:
// behind the delete, so that there is room for its node. mu is unlocked meanwhile, since the delete calls hooks.
func (s *Turns) sendLeaveLocked(ctx context.Context, t *queue.Turn) *session.Removal {
	s.leaving++
	s.mu.Unlock()
	r := t.Leave(ctx)
	s.mu.Lock()
	s.leaving--
	s.contendLocked()
	return r
}

// lost lets those that wait get another turn.
func (s *Turns) lost(t *turn) {
	s.mu.Lock()
	defer s.unlock()
	keptTurns.remove(t)
	if s.turn == t {
		s.turn = nil
	}
	s.contendLocked()
}

// GiveUpKept gives up a kept turn for a contender of this process, which would otherwise wait for the event.
func (s *Turns) GiveUpKept() { s.giveUp(nil) }

// giveUp leaves the kept turn, or only beyond, for which there was no room.
func (s *Turns) giveUp(beyond *turn) {
	s.mu.Lock()
	defer s.unlock()
	if t := s.turn; t != nil && t.holds == 0 && (beyond == nil || t == beyond) {
		s.leaveLocked(context.Background(), t, beyond == nil)
	}
}

// followLocked has one goroutine follow a kept turn, and that of readers also while they hold. The release of another
// hold sees by itself that somebody has come.
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

// tend gives up a kept turn when a contender has come or its time is over. For readers it first lists the contenders.
// It returns after what time it has to be called again, or 0 for never.
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
	case s.awaitsLookLocked(t):
		return t.rest(now)
	case t.holds > 0 && !s.readers:
		t.followed = false
	case t.holds > 0 && alone && !last:
		return t.rest(now)
	case t.holds > 0:
		s.turn = nil
	case alone && !last && left > 0:
		return left
	default:
		s.leaveLocked(context.Background(), t, !last && !alone && left > 0)
	}
	s.contendLocked()
	return 0
}

func (t *turn) rest(now time.Time) time.Duration {
	return max(min(t.of.keep, t.limit.Sub(now)), time.Millisecond) // readers who hold for long must not keep a goroutine busy
}

// maxLooks is how often readers list again before another reader of this process comes.
const maxLooks = 16

// awaitsLookLocked reports whether readers are about to list: other readers come and go, and only writers matter.
// Until that is answered, newcomers wait.
func (s *Turns) awaitsLookLocked(t *turn) bool {
	return s.readers && isClosed(t.disturbed) && !t.IsLast()
}

// lookLocked lists again, and admits those that wait unless a writer has come. mu is unlocked meanwhile.
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
