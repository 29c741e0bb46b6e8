package share

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/queue"
)

// Turns are the turns that the goroutines of this process share, of one lock object. They wait in a list, and one
// goroutine more acquires for all. Its turn goes to the first, and at a release to the next. If nobody waits, it may
// be kept.
//
// Readers all hold the turn that was acquired for them. Later readers join it until a writer of another process, which
// they would keep waiting, has come.
//
// The methods may be called by several goroutines at once. No hook is called under mu: hooks may look at the lock.
type Turns struct {
	q         *queue.Queue
	r         queue.Request
	handovers int           // in one turn, once somebody of another process may have come
	keep      time.Duration // 0: turns are not kept
	readers   bool

	mu        sync.Mutex
	turn      *turn
	waiting   list.List // of *waiter
	acquiring *acquisition
	trying    bool // others wait for what a try gets
	leaving   int  // whose delete is about to be sent: this object sends nothing ahead of it
	habit     habit
	whenIdle  func()
}

type waiter struct {
	ctx context.Context
	got chan grant
	at  *list.Element // nil: its grant is in got
}

type grant struct {
	turn   *turn
	effort queue.Effort
	err    error
}

type acquisition struct {
	cancel context.CancelFunc // called when nobody waits any more
	over   chan struct{}
	shown  queue.Waiting
}

var again = queue.Effort{Position: -1}

// NewTurns returns the turns of a lock that one goroutine holds at a time.
func NewTurns(q *queue.Queue, r queue.Request, handovers int, keep time.Duration) *Turns {
	r.Shared = true
	return &Turns{q: q, r: r, handovers: handovers, keep: keep}
}

// NewReaders returns the turns of readers.
func NewReaders(q *queue.Queue, r queue.Request, keep time.Duration) *Turns {
	s := NewTurns(q, r, 0, keep)
	s.readers = true
	return s
}

// Acquire waits as [queue.Queue.Acquire] does. A try is busy without a request while a goroutine of this process has
// the lock, or waits for it, unless they are readers.
func (s *Turns) Acquire(ctx context.Context, try bool) (*queue.Lease, error) {
	if s.q.Manager().Trace().Acquire == nil && ctx.Err() == nil { // nobody is told
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

// get returns the turn that is kept or shared, or waits for one; a try asks the servers.
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
	// When the acquisition has ended, the delete of its node has left, and what this process sends next finds room.
	// That takes no time, unless a hook blocks.
	a.cancel()
	s.mu.Unlock()
	select {
	case <-a.over:
	case <-time.After(10 * time.Millisecond):
	}
	return grant{nil, again, &why}
}

func (s *Turns) tryAndUnlock(ctx context.Context) grant {
	defer s.unlock()
	unused := s.turn == nil && s.acquiring == nil && !s.trying // one that is being left is not in the way
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

// contendLocked acquires for those that wait, unless a goroutine of this process is in the way.
func (s *Turns) contendLocked() {
	if s.waiting.Len() == 0 || s.turn != nil || s.acquiring != nil || s.trying || s.leaving > 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.waiting.Front().Value.(*waiter).ctx)) // for hooks
	s.acquiring = &acquisition{cancel: cancel, over: make(chan struct{})}
	r := s.r
	r.MayKeep, r.Shown = s.mayKeepLocked(), &s.acquiring.shown
	go s.contend(ctx, s.acquiring, r)
}

// mayKeepLocked is called once for each attempt to get a turn.
func (s *Turns) mayKeepLocked() bool {
	return s.keep > 0 && mostKept(s.q.Manager()) > 0 && s.habit.next()
}

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

func (s *Turns) admitLocked(t *turn, effort queue.Effort) {
	for more := true; more && s.waiting.Len() > 0; more = s.readers {
		t.holds++
		s.nextLocked() <- grant{t, effort, nil}
		effort = again
	}
}

// nextLocked removes the first waiter. Its grant goes into the channel.
func (s *Turns) nextLocked() chan<- grant {
	w := s.waiting.Remove(s.waiting.Front()).(*waiter)
	w.at = nil
	return w.got
}

func (s *Turns) why() (out queue.WaitError) {
	s.mu.Lock()
	t, a := s.turn, s.acquiring
	if s.trying || t != nil && s.awaitsLookLocked(t) {
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

// WhenIdle is as in [State]: new Turns would be as good, and have no less to remember.
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
