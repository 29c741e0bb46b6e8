package place

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/core"
)

// Local is a queue of this process in front of a [Queue]. Its waiters share one contender, with
// one node and one watch. When the contender is granted, the first waiter holds. A release
// hands the lock over to the next waiter at once, first come, first served, and no server is
// asked. All of that is one turn. It ends after a number of hand-overs, or when nobody waits any
// more: then the node is deleted, or kept for a while (WithLazyRelease). The waiters that remain
// get a new contender, at the end of the queue.
//
// With WithLazyRelease, hand-overs count only from when a contender of another process has come.
// And if contenders of the Local's kind do not block each other, as those of readers, there are no
// hand-overs: all waiters of a contender hold at once, and others join them, as long as no contender
// has come that the node blocks.
//
// Every hold has a [Lease] of its own. The leases of a turn share its node, and so their path,
// Guard, Token and loss. A loss does not concern the waiters: they get a new contender.
//
// The methods may be called by several goroutines at once.
type Local struct {
	q    *Queue
	r    Request
	most int           // hand-overs in one turn
	lazy time.Duration // how long a place is kept; 0: not at all
	many bool          // several leases can hold at once: those of readers, with lazy

	mu      sync.Mutex
	waiting *waiters // those that wait now, except for contenders that were split off
	// At most one of these has the open place of the Local, which newcomers may share. If none has, the Local is idle.
	trying bool             // a caller contends by itself, and has not begun to wait for others
	shared *sharedContender // contends for the waiters; otherwise nil
	turn   *turn            // is held, or kept; otherwise nil

	left    int // hand-overs that the turn has left
	habit   habit
	timer   *time.Timer // calls expire; nil until a place was kept
	ticking bool        // the timer runs
}

// idleLocked reports whether the Local has no open place.
func (l *Local) idleLocked() bool { return !l.trying && l.shared == nil && l.turn == nil }

// Made returns l. It panics if l is nil or a zero value.
func (l *Local) Made() *Local {
	if l == nil || l.q == nil {
		panic("queue: Local not made by Queue.Local")
	}
	return l
}

// LocalConfig says how places are shared.
type LocalConfig struct {
	Handovers int           // in one turn at most
	Lazy      time.Duration // how long a place is kept; 0: not at all
}

// Local returns a queue of this process for one kind of request. It does no I/O. Its errors match ErrInvalid.
func (q *Queue) Local(r Request, c LocalConfig) (*Local, error) {
	if err := r.complete(); err != nil {
		return nil, err
	}
	r.handedOn = true
	l := &Local{q: q, r: r, most: c.Handovers, lazy: c.Lazy, waiting: &waiters{}}
	if l.most < 0 || l.most == 0 && l.lazy == 0 {
		return nil, fmt.Errorf("%w: %d local hand-overs", core.ErrInvalid, l.most)
	}
	if r.Kind.Unfair {
		return nil, fmt.Errorf("%w: an unfair lock has no queue, and cannot be handed over", core.ErrInvalid)
	}
	if l.lazy > 0 && r.Kind.Configuration != nil {
		return nil, fmt.Errorf("%w: %s lock cannot keep its place", core.ErrInvalid, called(r.Kind))
	}
	l.many = l.lazy > 0 && r.sharedBy()
	return l, nil
}

// waiter is an Acquire that waits.
type waiter struct {
	ctx context.Context // with the values of the acquisition's hook
	got chan grant      // has room for one
	in  *waiters        // where it waits
	at  *list.Element   // its place there; nil once it was removed. Guarded by Local.mu
}

// waiters are waiters in the order in which they came. Local.mu guards them.
type waiters struct {
	list.List                  // of *waiter
	by        *sharedContender // contends for them; nil if none does
}

// grant is what a waiter gets: the turn in which it begins its hold, or an error.
type grant struct {
	turn   *turn
	result hooks.AcquireResult // of the shared contender, for the waiter that it was granted to
	err    error
}

// sharedContender contends for all waiters, until it is granted.
type sharedContender struct {
	waiting *waiters // it contends for them
	cancel  context.CancelFunc
	placed  chan struct{} // closed when it has its place in the queue, or has failed
	before  *turn         // the turn whose node is about to be deleted; nil if it follows none
	stands  *attempt      // the latest attempt, if it has entered already
	tries   int           // how many attempts there were, with that one
	lazy    bool          // its place may be kept

	view   atomic.Pointer[view]
	listed atomic.Pointer[listed] // its last listing; nil if there was none
	depart atomic.Pointer[func()] // says to its session that its node is about to go; nil before the first create
}

// Acquire is Acquire of a Queue by way of the local queue.
func (l *Local) Acquire(ctx context.Context) (*Lease, error) { return l.acquire(ctx, false) }

// TryAcquire is TryAcquire of a Queue. It sends no request while somebody in this process holds or waits,
// unless readers hold.
func (l *Local) TryAcquire(ctx context.Context) (*Lease, error) { return l.acquire(ctx, true) }

func (l *Local) acquire(ctx context.Context, try bool) (*Lease, error) {
	c := newCall(ctx, l.q)
	if err := c.begin(&l.r, try); err != nil {
		return nil, err
	}
	defer c.cut()
	lease, err := l.get(c, try)
	return c.conclude(lease, err)
}

// await waits for the grant of a waiter.
func (l *Local) await(c *call, w *waiter) (*Lease, error) {
	var g grant
	select {
	case g = <-w.got:
	case <-c.ctx.Done():
		why := l.why(w, time.Now())
		if l.withdraw(w) {
			return nil, because(c.ctx.Err(), why)
		}
		g = <-w.got // does not block for long: its grant is on the way
	}
	c.result = g.result
	if g.err != nil {
		return nil, g.err
	}
	return g.turn.begin(c.ctx), nil
}

// get is Acquire or TryAcquire without the Acquire hook.
func (l *Local) get(c *call, try bool) (*Lease, error) {
	if !try {
		t, w, lazy := l.join(c.ctx)
		switch {
		case t != nil:
			return t.begin(c.ctx), nil
		case w != nil:
			return l.await(c, w)
		}
		return l.try(l.trial(c, false, lazy))
	}
	if t := l.take(); t != nil {
		return t.begin(c.ctx), nil
	}
	if l.many {
		return l.tryShared(c)
	}
	lazy, ok := l.startTrying()
	if !ok {
		return nil, ErrBusy
	}
	return l.try(l.trial(c, true, lazy))
}

// request returns the request of a new contender.
func (l *Local) request() *Request {
	r := l.r
	return &r
}

// trial returns the acquisition of a caller that contends by itself.
func (l *Local) trial(c *call, try, lazy bool) *Acquisition {
	return c.acquisition(l.request(), &entry{try: try, lazy: lazy})
}

// try runs the contender of a caller, in its goroutine. If the contender has to wait, it becomes the shared one.
func (l *Local) try(g *Acquisition) (*Lease, error) {
	over := true
	defer func() {
		if over { // an error, or a policy has panicked or ended this goroutine
			l.stopTrying()
		}
	}()
	a, waits, err := g.attempts()
	switch {
	case waits && !g.how.try:
		over = false
		return l.await(g.call, l.goOn(g.ctx, a, g.result.Attempts))
	case waits:
		a, err = g.granted()
	}
	if err != nil {
		return nil, err
	}
	over = false
	return l.hold(g.ctx, a).begin(g.ctx), nil
}

// hold begins the turn of a contender that has run in the goroutine of its caller.
func (l *Local) hold(ctx context.Context, a *attempt) *turn {
	l.mu.Lock()
	l.trying = false
	t := l.holdLocked(ctx, a)
	l.mu.Unlock()
	t.guard()
	return t
}
