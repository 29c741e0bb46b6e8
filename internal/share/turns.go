package share

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
)

// Turns are the turns of one lock object that the goroutines of this process share. They have one turn in the queue at a
// time. Goroutines that wait stand in a list, and one more acquires for all of them. Its turn goes to the first. A release
// hands the turn over to the next, and no server is asked. If nobody waits here, the turn may be kept for the next use.
//
// Readers share differently: all that wait hold the turn that was acquired for them, and others join as long as nobody of
// another process has come whom they would keep waiting. A reader that comes later is the first of another turn, while the
// earlier one lasts until its last reader has released it.
//
// The methods may be called by several goroutines at once. Under mu, only the delete of a turn
// is sent, and no function of the program is called.
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
	habit     habit
	whenIdle  func() // see WhenIdle; nil: nobody is to be told
}

// waiter is a call that waits for a turn.
type waiter struct {
	ctx context.Context
	got chan grant    // has room for one
	at  *list.Element // in the list; nil: it has left, or its grant is in got
}

// grant is what a waiter gets.
type grant struct {
	turn   *turn
	effort queue.Effort
	err    error
}

// acquisition is a way to a turn for all that wait.
type acquisition struct {
	ctx    context.Context // with the values of the first that waited, for hooks
	cancel context.CancelFunc
	r      queue.Request
	shown  queue.Waiting
}

// again is the effort of an acquisition that uses a turn of this process again.
var again = queue.Effort{Position: -1}

// NewTurns returns the turns of a lock that one goroutine holds at a time. When somebody of another process waits, a turn is
// handed over as often as handovers says at most. A turn that nobody uses is kept for as long as keep says at most, or not at
// all if that is 0. One of the two must be more than 0. NewTurns does no I/O. Its errors match session.ErrInvalid.
func NewTurns(q *queue.Queue, r queue.Request, handovers int, keep time.Duration) (*Turns, error) {
	if handovers < 0 || handovers == 0 && keep == 0 {
		return nil, misuse.Invalidf("%d local hand-overs: want at least 1", handovers)
	}
	return newTurns(q, r, handovers, keep, false)
}

// NewReaders returns the turns of readers, which hold a turn together. The contenders of r must not be in each other's way.
// A turn is kept as by [NewTurns].
func NewReaders(q *queue.Queue, r queue.Request, keep time.Duration) (*Turns, error) {
	if err := CheckKeep(keep); err != nil {
		return nil, err
	}
	return newTurns(q, r, 0, keep, true)
}

func newTurns(q *queue.Queue, r queue.Request, handovers int, keep time.Duration, readers bool) (*Turns, error) {
	if keep != 0 {
		if err := CheckKeep(keep); err != nil {
			return nil, err
		}
	}
	r.Shared, r.MayKeep = true, keep > 0
	if err := r.Check(); err != nil {
		return nil, err
	}
	return &Turns{q: q, r: r, handovers: handovers, keep: keep, readers: readers}, nil
}

// Acquire waits for the lock until ctx ends, as [queue.Queue.Acquire] does. If try is true, it returns [queue.ErrBusy]
// instead of waiting for others, as [queue.Queue.TryAcquire] does. A try asks no server while a goroutine of this process
// holds the lock, or waits for it, unless they are readers.
//
// A release of the lease hands the turn over, keeps it or leaves it. One that nobody has used is not kept.
func (s *Turns) Acquire(ctx context.Context, try bool) (*queue.Lease, error) {
	if s.q.Manager().Trace().Acquire == nil && ctx.Err() == nil { // nobody is told of a use that waits for nothing
		if t := s.useAgain(); t != nil {
			return t.Lease(ctx, t.back), nil
		}
	}
	r := s.r
	return s.q.Acquiring(ctx, &r, try, func(ctx context.Context) (*queue.Lease, queue.Effort, error) {
		get := s.wait
		if try {
			get = s.try
		}
		t, effort, err := get(ctx)
		if err != nil {
			return nil, effort, err
		}
		return t.Lease(ctx, t.back), effort, nil
	})
}

func (s *Turns) useAgain() *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.useAgainLocked()
}

// wait returns the turn that is kept, or waits for one.
func (s *Turns) wait(ctx context.Context) (*turn, queue.Effort, error) {
	s.mu.Lock()
	if t := s.useAgainLocked(); t != nil {
		s.mu.Unlock()
		return t, again, nil
	}
	s.closeLocked(ctx)
	w := &waiter{ctx: ctx, got: make(chan grant, 1)}
	w.at = s.waiting.PushBack(w)
	s.contendLocked()
	s.mu.Unlock()
	select {
	case g := <-w.got:
		return g.turn, g.effort, g.err
	case <-ctx.Done():
	}
	why := s.why()
	if s.withdraw(w) {
		why.Err = ctx.Err()
		return nil, again, &why
	}
	g := <-w.got // it is there
	return g.turn, g.effort, g.err
}

// try returns the turn that is kept, or asks the servers for one.
func (s *Turns) try(ctx context.Context) (*turn, queue.Effort, error) {
	s.mu.Lock()
	if t := s.useAgainLocked(); t != nil {
		s.mu.Unlock()
		return t, again, nil
	}
	s.closeLocked(ctx)
	unused := s.turn == nil && s.acquiring == nil && !s.trying
	if !unused && !s.readers {
		s.mu.Unlock()
		return nil, again, queue.ErrBusy
	}
	s.trying = !s.readers
	r := s.r
	r.MayKeep = unused && s.mayKeepLocked()
	s.mu.Unlock()

	granted, effort, err := s.q.Begin(ctx, r, true, nil)

	s.mu.Lock()
	s.trying = false
	var t *turn
	if err == nil {
		t = s.beginLocked(granted, 1)
	} else {
		s.contendLocked() // for those that have come since
	}
	s.unlock()
	return t, effort, err
}

// contendLocked begins an acquisition for those that wait, unless they wait for a goroutine of this process.
func (s *Turns) contendLocked() {
	if s.waiting.Len() == 0 || s.turn != nil || s.acquiring != nil || s.trying {
		return
	}
	a := &acquisition{r: s.r}
	a.ctx, a.cancel = context.WithCancel(context.WithoutCancel(s.waiting.Front().Value.(*waiter).ctx))
	a.r.MayKeep = s.mayKeepLocked()
	s.acquiring = a
	go s.contend(a)
}

// mayKeepLocked reports whether the next turn may be kept. It is called once for each.
func (s *Turns) mayKeepLocked() bool {
	return s.keep > 0 && mostKept(s.q.Manager()) > 0 && s.habit.next()
}

// contend acquires a turn for those that wait.
func (s *Turns) contend(a *acquisition) {
	granted, effort, err := s.q.Begin(a.ctx, a.r, false, &a.shown)

	s.mu.Lock()
	calledBack := s.acquiring != a // by the last that waited; those that have come since have another one
	if !calledBack {
		s.acquiring = nil
	}
	switch {
	case calledBack:
	case err == nil:
		n := 1
		if s.readers {
			n = s.waiting.Len()
		}
		t := s.beginLocked(granted, n)
		for ; n > 0; n-- {
			s.nextLocked() <- grant{t, effort, nil}
			effort = again
		}
	default:
		for s.waiting.Len() > 0 {
			s.nextLocked() <- grant{nil, effort, err}
		}
	}
	s.unlock()
	a.cancel()
	if err == nil && calledBack {
		granted.Leave(a.ctx)
	}
}

// nextLocked removes the first waiter. What it gets is sent to the returned channel, which has room for it.
func (s *Turns) nextLocked() chan<- grant {
	w := s.waiting.Remove(s.waiting.Front()).(*waiter)
	w.at = nil
	return w.got
}

// withdraw removes a waiter, and reports whether it was still waiting. The last one calls the acquisition back, whose node
// is then deleted for certain.
func (s *Turns) withdraw(w *waiter) bool {
	s.mu.Lock()
	defer s.unlock()
	return s.withdrawLocked(w)
}

func (s *Turns) withdrawLocked(w *waiter) bool {
	if w.at == nil {
		return false
	}
	s.waiting.Remove(w.at)
	w.at = nil
	if s.waiting.Len() == 0 && s.acquiring != nil {
		s.acquiring.cancel()
		s.acquiring = nil // nobody waits for its end
	}
	return true
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

// WhenIdle reports whether the Turns can be forgotten, since new ones are as good: there is no turn that a further call
// could share, use again or wait for, nobody waits, and nothing was learned about the use of keeping turns. If not,
// f is called in a goroutine of its own when that is so, once. A further call of WhenIdle replaces f.
func (s *Turns) WhenIdle(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isIdleLocked() {
		s.whenIdle = nil
		return true
	}
	s.whenIdle = f
	return false
}

func (s *Turns) isIdleLocked() bool {
	return s.turn == nil && s.acquiring == nil && !s.trying && s.waiting.Len() == 0 && s.habit.isForgotten(time.Now())
}

// unlock unlocks mu after a change that can have made the Turns idle.
func (s *Turns) unlock() {
	if s.whenIdle != nil && s.isIdleLocked() {
		go s.whenIdle()
		s.whenIdle = nil
	}
	s.mu.Unlock()
}
