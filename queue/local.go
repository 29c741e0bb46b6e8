package queue

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/session"
)

// Local is a queue of this process in front of a [Queue]. Its waiters share one contender, with
// one node and one watch. When the contender is granted, the first waiter holds. A release
// hands the lock over to the next waiter at once, first come, first served, and no server is
// asked. All of that is one turn. It ends after a number of hand-overs, or when nobody waits any
// more: then the node is deleted. The waiters that remain get a new contender, at the end of
// the queue.
//
// Every hold has a [Lease] of its own. The leases of a turn share its node, and so their path,
// Guard, Token and loss. A loss does not concern the waiters: they get a new contender.
//
// The methods may be called by several goroutines at once. They panic if the Local was not made
// by [Queue.Local].
type Local struct {
	q    *Queue
	r    Request
	most int // hand-overs in one turn

	mu      sync.Mutex
	state   localState
	waiting list.List        // of *waiter, in the order in which they came; empty when idle
	shared  *sharedContender // of the state contending, otherwise nil
	turn    *turn            // of the state holding, otherwise nil
	left    int              // hand-overs that the turn has left
}

// localState says what a Local has in the directory. The package documentation has the table of
// its transitions.
type localState int

const (
	idle       localState = iota // nothing
	trying                       // the node of a TryAcquire, which is not granted yet
	contending                   // the node of the shared contender, which is not granted yet
	holding                      // the node of a turn
)

// made returns l. It panics if l is nil or a zero value.
func (l *Local) made() *Local {
	if l == nil || l.q == nil {
		panic("queue: Local not made by Queue.Local")
	}
	return l
}

// Local returns a queue of this process for one kind of request. A turn has at most the given
// number of hand-overs, which must be at least 1. Local does no I/O. A bad request or number, or
// an unfair kind, is an error that matches [session.ErrInvalid].
func (q *Queue) Local(r Request, handovers int) (*Local, error) {
	q.made()
	if err := r.complete(); err != nil {
		return nil, err
	}
	if handovers < 1 {
		return nil, fmt.Errorf("queue: %w: %d local hand-overs", session.ErrInvalid, handovers)
	}
	if r.Kind.Unfair {
		return nil, fmt.Errorf("queue: %w: an unfair lock has no queue, and cannot be handed over", session.ErrInvalid)
	}
	r.handedOn = true
	return &Local{q: q, r: r, most: handovers}, nil
}

// waiter is an Acquire that waits.
type waiter struct {
	ctx context.Context // with the values of the acquisition's hook
	got chan grant      // has room for one
	at  *list.Element   // in Local.waiting; nil once it was removed. Guarded by Local.mu
}

// grant is what a waiter gets: the turn in which it begins its hold, or an error.
type grant struct {
	turn   *turn
	result session.AcquireResult // of the shared contender, for the waiter that it was granted to
	err    error
}

// sharedContender contends for all waiters, until it is granted.
type sharedContender struct {
	cancel context.CancelFunc
	placed chan struct{} // closed when it has its place in the queue, or has failed
	before *turn         // the turn whose node is about to be deleted; nil if it follows none
}

// Acquire is [Queue.Acquire] by way of the local queue. When ctx ends, the other waiters keep
// their places, and the node stays unless nobody else waits. If the shared contender fails, for
// example with [ErrConflict], all waiters get that error.
func (l *Local) Acquire(ctx context.Context) (*Lease, error) {
	l.made()
	misuse.Context(ctx, "queue: Local.Acquire")
	return l.q.traced(ctx, l.r, false, func(ctx context.Context, result *session.AcquireResult) (*Lease, error) {
		w := l.join(ctx)
		var g grant
		select {
		case g = <-w.got:
		case <-ctx.Done():
			if l.withdraw(w) {
				return nil, ctx.Err()
			}
			g = <-w.got // does not block for long: its grant is on the way
		}
		*result = g.result
		if g.err != nil {
			return nil, g.err
		}
		return g.turn.begin(ctx), nil
	})
}

// TryAcquire is [Queue.TryAcquire]. It sends no request while somebody in this process holds
// or waits.
func (l *Local) TryAcquire(ctx context.Context) (*Lease, error) {
	l.made()
	misuse.Context(ctx, "queue: Local.TryAcquire")
	return l.q.traced(ctx, l.r, true, func(ctx context.Context, result *session.AcquireResult) (*Lease, error) {
		if !l.startTrying() {
			return nil, ErrBusy
		}
		granted := false
		defer func() {
			if !granted { // an error, or a hook has panicked or ended this goroutine
				l.stopTrying()
			}
		}()
		a, err := l.q.attempts(ctx, l.r, entry{try: true}, result)
		if err != nil {
			return nil, err
		}
		granted = true
		l.mu.Lock()
		t := l.holdLocked(ctx, a)
		l.mu.Unlock()
		t.guard()
		return t.begin(ctx), nil
	})
}

// The transitions follow, in the order of the table in the package documentation.

// join adds a waiter. An idle Local begins to contend.
func (l *Local) join(ctx context.Context) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &waiter{ctx: ctx, got: make(chan grant, 1)}
	w.at = l.waiting.PushBack(w)
	if l.state == idle {
		l.contendLocked(nil)
	}
	return w
}

// startTrying reports whether the Local was idle.
func (l *Local) startTrying() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != idle {
		return false
	}
	l.state = trying
	return true
}

// stopTrying follows a try that was not granted.
func (l *Local) stopTrying() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.contendLocked(nil)
}

// contendLocked starts a shared contender, or becomes idle if nobody waits. before is the turn
// that has just ended, or nil.
func (l *Local) contendLocked(before *turn) {
	first := l.waiting.Front()
	if first == nil {
		l.state = idle
		return
	}
	// Hooks get the values of the first waiter's context, even if that waiter withdraws.
	ctx, cancel := context.WithCancel(context.WithoutCancel(first.Value.(*waiter).ctx))
	l.state = contending
	l.shared = &sharedContender{cancel, make(chan struct{}), before}
	go l.contend(ctx, l.shared)
}

// contend runs the shared contender until it is granted, fails, or is called back.
func (l *Local) contend(ctx context.Context, me *sharedContender) {
	defer me.cancel()
	placed := sync.OnceFunc(func() { close(me.placed) })
	defer placed()
	result := session.AcquireResult{Position: -1}
	returned := false
	defer func() {
		if !returned { // a hook has ended this goroutine
			l.fail(me, result, errEnded)
		}
	}()
	a, err := l.q.attempts(ctx, l.r, entry{placed: placed}, &result)
	if errors.Is(err, session.ErrTooManyNodes) && me.before != nil {
		// The session has no room for both nodes: that of the turn before has to go first.
		placed()
		me.before.awaitGone(ctx)
		a, err = l.q.attempts(ctx, l.r, entry{placed: placed}, &result)
	}
	returned = true
	if err != nil {
		l.fail(me, result, err)
		return
	}
	l.mu.Lock()
	if l.shared != me { // called back
		l.mu.Unlock()
		a.leave(ctx, context.Canceled)
		return
	}
	t := l.holdLocked(ctx, a)
	w := l.nextLocked()
	l.mu.Unlock()
	t.guard()
	w.got <- grant{turn: t, result: result}
}

// holdLocked begins a turn with an attempt that was granted.
func (l *Local) holdLocked(ctx context.Context, a *attempt) *turn {
	l.state, l.shared = holding, nil
	l.turn, l.left = newTurn(ctx, a, l), l.most
	return l.turn
}

// nextLocked removes the first waiter.
func (l *Local) nextLocked() *waiter {
	w := l.waiting.Remove(l.waiting.Front()).(*waiter)
	w.at = nil
	return w
}

// fail gives all waiters the error of the shared contender, unless it was called back.
func (l *Local) fail(me *sharedContender, result session.AcquireResult, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shared != me {
		return
	}
	l.state, l.shared = idle, nil
	for l.waiting.Len() > 0 {
		l.nextLocked().got <- grant{result: result, err: err} // does not block: there is room
	}
}

// withdraw removes a waiter, and reports whether it was still waiting. The last waiter calls the
// shared contender back, whose node is then deleted for certain.
func (l *Local) withdraw(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.at == nil {
		return false
	}
	l.waiting.Remove(w.at)
	if l.waiting.Len() == 0 && l.state == contending {
		l.shared.cancel()
		l.state, l.shared = idle, nil
	}
	return true
}

// handOver gives the turn to the next waiter, after a release. It returns false if there is none,
// or if the turn is over or has no hand-over left.
func (l *Local) handOver(t *turn) bool {
	l.mu.Lock()
	if l.turn != t || l.left == 0 || l.waiting.Len() == 0 || !t.stands() {
		l.mu.Unlock()
		return false
	}
	l.left--
	w := l.nextLocked()
	l.mu.Unlock()
	t.hurry()
	w.got <- grant{turn: t, result: session.AcquireResult{Position: -1}}
	return true
}

// noHandOver makes the present hold the last one of its turn.
func (l *Local) noHandOver(t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn == t {
		l.left = 0
	}
}

// turnOver ends the turn. If others wait, it starts a shared contender for them, and returns a
// channel that is closed when that has its place in the queue. Otherwise it returns nil.
func (l *Local) turnOver(t *turn) (placed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn != t {
		return nil // it was over already
	}
	l.turn = nil
	l.contendLocked(t)
	if l.state != contending {
		return nil
	}
	return l.shared.placed
}
