package hold

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/place"
)

// Local is a queue of this process in front of a [place.Queue]. Its waiters share one contender, with
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
// Every hold has a [place.Lease] of its own. The leases of a turn share its node, and so their path,
// Guard, Token and loss. A loss does not concern the waiters: they get a new contender.
//
// The methods may be called by several goroutines at once.
type Local struct {
	q    *place.Queue
	r    place.Request
	most int           // hand-overs in one turn
	lazy time.Duration // how long a place is kept; 0: not at all
	many bool          // several leases can hold at once: those of readers, with lazy

	unused func() // see WhenUnused; nil: nobody is to be told

	mu      sync.Mutex
	waiting *waiters // those that wait now, except for contenders that were split off
	// At most one of these has the open place of the Local, which newcomers may share. If none has, the Local is idle.
	trying bool             // a caller contends by itself, and has not begun to wait for others
	shared *sharedContender // contends for the waiters; otherwise nil
	turn   *tenure          // is held, or kept; otherwise nil

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

// NewLocal returns a queue of this process for one kind of request. It does no I/O. Its errors match ErrInvalid.
func NewLocal(q *place.Queue, r place.Request, c LocalConfig) (*Local, error) {
	if err := r.HandOn(); err != nil {
		return nil, err
	}
	l := &Local{q: q, r: r, most: c.Handovers, lazy: c.Lazy, waiting: &waiters{}}
	switch {
	case l.most < 0 || l.most == 0 && l.lazy == 0:
		return nil, fmt.Errorf("%w: %d local hand-overs", core.ErrInvalid, l.most)
	case l.lazy > 0 && r.Kind.Configuration != nil:
		return nil, fmt.Errorf("%w: %s lock cannot keep its place", core.ErrInvalid, place.Called(r.Kind))
	}
	l.many = l.lazy > 0 && r.IsShared()
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
	turn   *tenure
	result hooks.AcquireResult // of the shared contender, for the waiter that it was granted to
	err    error
}

// sharedContender contends for all waiters, until it is granted.
type sharedContender struct {
	waiting *waiters // it contends for them
	cancel  context.CancelFunc
	before  *place.Turn        // the turn whose node is about to be deleted; nil if it follows none
	stands  *place.Acquisition // of a caller that has contended by itself, and has to wait; nil if there was none
	lazy    bool               // its place may be kept
	place.Shown
}

// request returns the request of a new contender.
func (l *Local) request() *place.Request {
	r := l.r
	return &r
}
