package share

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/queue"
)

// Turns are the turns of one lock object that the goroutines of this process share. Goroutines that wait stand in a list, and one
// more acquires for all of them. Its turn goes to the first. A release hands the turn over to the next, and no server is asked.
// If nobody waits here, the turn may be kept for the next use.
//
// Readers share differently: all that wait hold the turn that was acquired for them, and others join as long as nobody of
// another process has come whom they would keep waiting. Who comes later is the first of another turn.
//
// The methods may be called by several goroutines at once. No hook is called under mu: hooks may look at the lock.
type Turns struct {
	q         *queue.Queue
	r         queue.Request
	handovers int           // in one turn at most, once somebody of another process may have come
	keep      time.Duration // how long a turn that nobody uses is kept; 0: not at all
	readers   bool          // several hold a turn at a time

	mu        sync.Mutex
	turn      *turn        // that others wait for, share or use again; nil: none
	waiting   list.List    // of *waiter
	acquiring *acquisition // for those that wait; nil: none is under way
	trying    bool         // a try asks the servers, and others wait for what it gets
	leaving   int          // turns whose delete is about to be sent: this object sends nothing ahead of it
	habit     habit
	whenIdle  func() // see WhenIdle; nil: nobody is to be told
}

// waiter is a call that waits for a turn.
type waiter struct {
	ctx context.Context
	got chan grant    // has room for one
	at  *list.Element // in the list; nil: its grant is in got
}

// grant is what a waiter gets.
type grant struct {
	turn   *turn
	effort queue.Effort
	err    error
}

// acquisition is a way to a turn for all that wait.
type acquisition struct {
	cancel context.CancelFunc // called when nobody waits any more
	over   chan struct{}      // closed when it has ended
	shown  queue.Waiting
}

// again is the effort of an acquisition that uses a turn of this process again.
var again = queue.Effort{Position: -1}

// NewTurns returns the turns of a lock that one goroutine holds at a time. When somebody of another process waits, a turn is
// handed over as often as handovers says at most. A turn that nobody uses is kept for as long as keep says at most. The options
// of the lock have checked all that.
func NewTurns(q *queue.Queue, r queue.Request, handovers int, keep time.Duration) *Turns {
	r.Shared = true
	return &Turns{q: q, r: r, handovers: handovers, keep: keep}
}

// NewReaders returns the turns of readers, which hold a turn together. The contenders of r must not be in each other's way.
// A turn is kept as by [NewTurns].
func NewReaders(q *queue.Queue, r queue.Request, keep time.Duration) *Turns {
	s := NewTurns(q, r, 0, keep)
	s.readers = true
	return s
}

// Acquire waits for the lock as [queue.Queue.Acquire] does, or as [queue.Queue.TryAcquire] if try is true. A try asks no server
// while a goroutine of this process holds the lock, or waits for it, unless they are readers.
func (s *Turns) Acquire(ctx context.Context, try bool) (*queue.Lease, error) {
	if s.q.Manager().Trace().Acquire == nil && ctx.Err() == nil { // nobody is told of a use that waits for nothing
		s.mu.Lock()
		t := s.useAgainLocked()
		s.mu.Unlock()
		if t != nil {
			return t.Lease(ctx, t.back), nil
		}
	}
	r := s.r
	ctx, end, err := s.q.StartAcquiring(ctx, &r, try)
	if err != nil {
		return nil, err
	}
	g := s.get(ctx, try)
	if g.err != nil {
		return end(nil, g.effort, g.err)
	}
	return end(g.turn.Lease(ctx, g.turn.back), g.effort, nil)
}

// get returns the turn that is kept, or that readers share. If there is none, it waits for one; a try asks the servers.
func (s *Turns) get(ctx context.Context, try bool) grant {
	s.mu.Lock()
	for more := true; more; more = s.closeLocked(ctx) {
		if t := s.useAgainLocked(); t != nil {
			s.mu.Unlock()
			return grant{t, again, nil}
		}
	}
	if try {
		return s.tryAndUnlock(ctx)
	}
	w := &waiter{ctx: ctx, got: make(chan grant, 1)}
	w.at = s.waiting.PushBack(w)
	s.contendLocked()
	s.mu.Unlock()
	select {
	case g := <-w.got:
		return g
	case <-ctx.Done():
	}
	why := s.why()
	why.Err = ctx.Err()
	s.mu.Lock()
	if w.at == nil {
		s.mu.Unlock()
		return <-w.got
	}
	s.waiting.Remove(w.at)
	a := s.acquiring
	if s.waiting.Len() > 0 || a == nil {
		s.unlock()
		return grant{nil, again, &why}
	}
	// When the acquisition has ended, the delete of its node has left: what this process sends next comes behind that, and finds
	// room. That takes no time, unless a hook blocks, which has the context of another caller.
	a.cancel()
	s.mu.Unlock()
	select {
	case <-a.over:
	case <-time.After(10 * time.Millisecond):
	}
	return grant{nil, again, &why}
}

// tryAndUnlock asks the servers for a turn, unless a goroutine of this process is in the way. mu is locked, and then unlocked.
func (s *Turns) tryAndUnlock(ctx context.Context) grant {
	defer s.unlock()
	unused := s.turn == nil && s.acquiring == nil && !s.trying // a turn that is being left is not in the way
	if !unused && !s.readers {
		return grant{nil, again, queue.ErrBusy}
	}
	s.trying = !s.readers
	r := s.r
	r.MayKeep = unused && s.leaving == 0 && s.mayKeepLocked()
	s.mu.Unlock()
	granted, effort, err := s.q.Begin(ctx, &r, queue.Tries)
	s.mu.Lock()
	s.trying = false
	if err != nil {
		s.contendLocked() // for those that have come since
		return grant{nil, effort, err}
	}
	return grant{s.beginLocked(granted, 1), effort, nil}
}

// contendLocked begins an acquisition for those that wait, unless they wait for a goroutine of this process.
func (s *Turns) contendLocked() {
	if s.waiting.Len() == 0 || s.turn != nil || s.acquiring != nil || s.trying || s.leaving > 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.waiting.Front().Value.(*waiter).ctx)) // its values are for hooks
	s.acquiring = &acquisition{cancel: cancel, over: make(chan struct{})}
	r := s.r
	r.MayKeep, r.Shown = s.mayKeepLocked(), &s.acquiring.shown
	go s.contend(ctx, s.acquiring, r)
}

// mayKeepLocked reports whether the next turn may be kept. It is called once for each.
func (s *Turns) mayKeepLocked() bool {
	return s.keep > 0 && mostKept(s.q.Manager()) > 0 && s.habit.next()
}

// contend acquires a turn for those that wait.
func (s *Turns) contend(ctx context.Context, a *acquisition, r queue.Request) {
	granted, effort, err := s.q.Begin(ctx, &r, queue.Waits)

	s.mu.Lock()
	defer s.unlock()
	defer close(a.over)
	s.acquiring = nil
	calledBack := ctx.Err() != nil
	a.cancel()
	switch {
	case err == nil && s.waiting.Len() == 0:
		s.sendLeaveLocked(ctx, granted)
	case err == nil:
		s.admitLocked(s.beginLocked(granted, 0), effort)
	case calledBack:
		s.contendLocked() // for those that have come since
	default:
		for s.waiting.Len() > 0 {
			s.nextLocked() <- grant{nil, effort, err}
		}
	}
}

// admitLocked gives a turn to the first waiter, or to all if they are readers.
func (s *Turns) admitLocked(t *turn, effort queue.Effort) {
	for more := true; more && s.waiting.Len() > 0; more = s.readers {
		t.holds++
		s.nextLocked() <- grant{t, effort, nil}
		effort = again
	}
}

// nextLocked removes the first waiter. What it gets is sent to the returned channel, which has room for it.
func (s *Turns) nextLocked() chan<- grant {
	w := s.waiting.Remove(s.waiting.Front()).(*waiter)
	w.at = nil
	return w.got
}

// why says what a waiter waits for: other processes, or this one.
func (s *Turns) why() (out queue.WaitError) {
	s.mu.Lock()
	t, a := s.turn, s.acquiring
	if s.trying || t != nil && s.awaitsLookLocked(t) { // readers that hold are not in the way
		t = nil
	}
	s.mu.Unlock()
	switch {
	case a != nil:
		return s.q.Why(&a.shown)
	case t == nil:
		return s.q.Why(nil)
	}
	out.Ahead = t.Holder()
	out.Reason = "held by this process"
	if since := out.Ahead.HeldSince; !since.IsZero() {
		out.Reason += " for " + queue.Short(time.Since(since))
	}
	return out
}

// WhenIdle reports whether new Turns would be as good: there is no turn that a further call could share, use again or wait for,
// nobody waits, and nothing was learned about the use of keeping turns. See [State].
func (s *Turns) WhenIdle(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	idle := s.isIdleLocked()
	if s.whenIdle = f; idle {
		s.whenIdle = nil
	}
	return idle
}

func (s *Turns) isIdleLocked() bool {
	return s.turn == nil && s.acquiring == nil && !s.trying && s.leaving == 0 && s.waiting.Len() == 0 &&
		s.habit.isForgotten(time.Now())
}

// unlock unlocks mu after a change that can have made the Turns idle.
func (s *Turns) unlock() {
	if s.whenIdle != nil && s.isIdleLocked() {
		go s.whenIdle()
		s.whenIdle = nil
	}
	s.mu.Unlock()
}
