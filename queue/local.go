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

// Local is a queue within this process before a [Queue]. Those who wait in it have one
// contender among all processes, with one node and one watch, however many they are. When
// that is granted the first of them holds; whoever releases passes the turn on to the next
// one at once, in the order in which they came, and no server is asked. That is one turn:
// after so many hand-overs, or when nobody waits any more, the node is deleted, and who
// waits still gets a new one, at the end of the queue.
//
// Every hold has a [Lease] of its own. What the leases of a turn share is the node: its path,
// their Guard and their Token, and their loss. Those who wait are not concerned by a loss:
// they go on with a new contender.
//
// Methods may be called by any number of goroutines at once. They panic if [Queue.Local] has not
// made the Local.
type Local struct {
	q    *Queue
	r    Request
	most int // hand-overs in a turn

	mu      sync.Mutex
	waiting list.List // of *waiter
	envoy   *envoy    // on its way; nil: nobody is
	turn    *turn     // that stands; nil: none does. Never together with an envoy
	left    int       // hand-overs that are left in it
}

// made returns l. It panics if l is nil or a zero value.
func (l *Local) made() *Local {
	if l == nil || l.q == nil {
		panic("queue: Local not made by Queue.Local")
	}
	return l
}

// Local returns a queue of this process for one kind of request, with at most so many
// hand-overs in a turn, which are at least 1. It does no I/O. A bad request or number, and
// an unfair kind, are errors that match [session.ErrInvalid].
func (q *Queue) Local(r Request, handovers int) (*Local, error) {
	q.made()
	if err := r.complete(); err != nil {
		return nil, err
	}
	if handovers < 1 {
		return nil, fmt.Errorf("queue: %w: %d local hand-overs", session.ErrInvalid, handovers)
	}
	if r.Kind.Unfair {
		return nil, fmt.Errorf("queue: %w: nobody passes an unfair lock on: it has no queue", session.ErrInvalid)
	}
	r.handedOn = true
	return &Local{q: q, r: r, most: handovers}, nil
}

// waiter is one who waits in this process.
type waiter struct {
	ctx context.Context // with the values of the acquisition's hook
	got chan grant      // room for one
	at  *list.Element   // nil: no longer waiting. Guarded by Local.mu
}

// grant is what a waiter gets: a turn, in which its hold is to begin, or an error.
type grant struct {
	turn   *turn
	result session.AcquireResult // of the envoy, for whom it was granted to
	err    error
}

// envoy is the one contender of all who wait, until it is granted.
type envoy struct {
	cancel context.CancelFunc // nil: a try, which ends by itself
	placed chan struct{}      // closed when it has its place in the queue, or ends; nil: a try
	before *turn              // whose node is on its way out when it enters; nil: none is
}

// Acquire is [Queue.Acquire] by way of the local queue: that ctx ends concerns neither the
// others who wait nor the node, unless nobody else waits. What makes the contender fail,
// such as [ErrConflict], fails for all who wait.
func (l *Local) Acquire(ctx context.Context) (*Lease, error) {
	l.made()
	misuse.Context(ctx, "queue: Local.Acquire")
	return l.q.traced(ctx, l.r, false, func(ctx context.Context, result *session.AcquireResult) (*Lease, error) {
		w := &waiter{ctx: ctx, got: make(chan grant, 1)}
		l.mu.Lock()
		w.at = l.waiting.PushBack(w)
		l.sendLocked(nil)
		l.mu.Unlock()
		var g grant
		select {
		case g = <-w.got:
		case <-ctx.Done():
			if l.withdraw(w) {
				return nil, ctx.Err()
			}
			g = <-w.got // at once: it had been chosen
		}
		*result = g.result
		if g.err != nil {
			return nil, g.err
		}
		return g.turn.begin(ctx), nil
	})
}

// TryAcquire is [Queue.TryAcquire], and asks no server while somebody of this process holds
// or waits.
func (l *Local) TryAcquire(ctx context.Context) (*Lease, error) {
	l.made()
	misuse.Context(ctx, "queue: Local.TryAcquire")
	return l.q.traced(ctx, l.r, true, func(ctx context.Context, result *session.AcquireResult) (*Lease, error) {
		me := &envoy{}
		l.mu.Lock()
		busy := l.turn != nil || l.envoy != nil || l.waiting.Len() > 0
		if !busy {
			l.envoy = me
		}
		l.mu.Unlock()
		if busy {
			return nil, ErrBusy
		}
		var t *turn
		defer func() {
			if t == nil {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.envoy = nil
				l.sendLocked(nil) // for those who have come meanwhile
			}
		}()
		a, err := l.q.attempts(ctx, l.r, entry{try: true}, result)
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		l.envoy = nil
		t = l.startLocked(ctx, a)
		l.mu.Unlock()
		t.guard()
		return t.begin(ctx), nil
	})
}

// sendLocked sends an envoy for those who wait, if there are any, and nobody holds or is on
// the way. before is the turn that has just ended, nil if none has.
func (l *Local) sendLocked(before *turn) {
	first := l.waiting.Front()
	if first == nil || l.turn != nil || l.envoy != nil {
		return
	}
	// What the hooks are told of belongs to the first of them, also if he withdraws.
	ctx, cancel := context.WithCancel(context.WithoutCancel(first.Value.(*waiter).ctx))
	l.envoy = &envoy{cancel, make(chan struct{}), before}
	go l.contend(ctx, l.envoy)
}

// contend is what an envoy does.
func (l *Local) contend(ctx context.Context, me *envoy) {
	defer me.cancel()
	placed := sync.OnceFunc(func() { close(me.placed) })
	defer placed()
	result := session.AcquireResult{Position: -1}
	answered := false
	defer func() {
		if !answered { // a hook has ended this goroutine
			l.fail(me, result, errEnded)
		}
	}()
	a, err := l.q.attempts(ctx, l.r, entry{first: placed}, &result)
	if errors.Is(err, session.ErrTooManyNodes) && me.before != nil {
		// Where there is no room for both nodes, that of the turn before has to go first.
		placed()
		me.before.awaitGone(ctx)
		a, err = l.q.attempts(ctx, l.r, entry{first: placed}, &result)
	}
	answered = true
	if err != nil {
		l.fail(me, result, err)
		return
	}
	l.mu.Lock()
	if l.envoy != me { // called back
		l.mu.Unlock()
		a.leave(ctx, context.Canceled)
		return
	}
	l.envoy = nil
	t := l.startLocked(ctx, a)
	w := l.nextLocked()
	l.mu.Unlock()
	t.guard()
	w.got <- grant{turn: t, result: result}
}

// fail tells all who wait that their envoy has failed, unless it was called back.
func (l *Local) fail(me *envoy, result session.AcquireResult, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.envoy != me {
		return
	}
	l.envoy = nil
	for l.waiting.Len() > 0 {
		l.nextLocked().got <- grant{result: result, err: err} // there is room
	}
}

// startLocked begins a turn.
func (l *Local) startLocked(ctx context.Context, a *attempt) *turn {
	l.turn, l.left = newTurn(ctx, a, l), l.most
	return l.turn
}

// nextLocked takes the first of those who wait out of the queue.
func (l *Local) nextLocked() *waiter {
	w := l.waiting.Remove(l.waiting.Front()).(*waiter)
	w.at = nil
	return w
}

// withdraw takes a waiter out of the queue; it reports whether he was still there. The last
// one calls the envoy back, whose node is then deleted for certain.
func (l *Local) withdraw(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.at == nil {
		return false
	}
	l.waiting.Remove(w.at)
	if l.waiting.Len() == 0 && l.envoy != nil && l.envoy.cancel != nil {
		l.envoy.cancel()
		l.envoy = nil
	}
	return true
}

// pass gives the turn to the next one who waits; false says that nobody can have it any more.
func (l *Local) pass(t *turn) bool {
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

// over is told that a turn is over. Where there are others to have the next, what it returns
// is closed when they have a place in the queue.
func (l *Local) over(t *turn) (placed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn != t {
		return nil
	}
	l.turn = nil
	l.sendLocked(t)
	if l.envoy == nil {
		return nil
	}
	return l.envoy.placed
}

// last makes the present hold of a turn its last.
func (l *Local) last(t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn == t {
		l.left = 0
	}
}
