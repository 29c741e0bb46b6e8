package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
)

// turn is a granted node, from the grant until the node is given up or lost. It is held by one
// lease at a time. The package documentation has a diagram.
type turn struct {
	a     *attempt // never changes any more
	info  session.HoldInfo
	local *Local // nil for a turn of a single lease

	// life ends with the turn. It has the values of the acquisition's context, for hooks.
	life context.Context
	end  context.CancelCauseFunc

	known    chan struct{} // closed once czxid or tokenErr is set
	czxid    int64
	tokenErr error

	pace rounds.Pace // of watchOwn, which runs once at a time

	// removal receives the removal of the node, once, when the turn of a Local is over and its
	// node was not lost with the session. It has room for one.
	removal chan plumbing.Removal

	mu     sync.Mutex
	holder *Lease         // the present lease, or the last one; nil until the first has begun
	own    plumbing.Watch // the last watch that was set on the node; nil if none was
	asked  bool           // the holder was asked to give the lock up

	// Of guard, which sets them while the turn lasts.
	delay       *time.Timer // sets the first watch; nil if the attempt had set one
	stopSession func()
	stopNode    func()
}

// newTurn returns the turn of an attempt that was granted. The caller calls guard and then begin.
func newTurn(ctx context.Context, a *attempt, local *Local) *turn {
	t := &turn{
		a: a, local: local, own: a.own,
		info:  session.HoldInfo{Kind: a.r.Kind.Name, Chroot: plumbing.OfManager(a.q.m).Chroot(), Path: a.q.dir, Node: a.nodePath()},
		known: make(chan struct{}),
		pace:  rounds.Pace{New: plumbing.OfManager(a.q.m).Retry()},
	}
	if local != nil {
		t.removal = make(chan plumbing.Removal, 1)
	}
	if a.place.known {
		t.czxid, t.tokenErr = a.place.token, a.place.tokenErr
		close(t.known)
	}
	t.life, t.end = context.WithCancelCause(holderContext(ctx, t.hooks()))
	return t
}

func (t *turn) hooks() *session.Trace { return t.a.q.hooks() }

// begin begins a hold. ctx is that of the caller that gets the lease, and begin runs in the
// caller's goroutine: if a hook panics, the turn goes on without this hold. The previous hold
// has ended.
func (t *turn) begin(ctx context.Context) *Lease {
	l := newLease(ctx, t)
	begun := false
	defer func() {
		if !begun {
			l.abandon()
		}
	}()
	l.tellEnd = traceHold(l.ctx, t.hooks(), t.info)
	begun = true
	t.mu.Lock()
	t.holder = l
	asked := t.asked
	t.mu.Unlock()
	if asked {
		go t.a.r.Revoked(l)
	}
	if cause := context.Cause(t.life); cause != nil {
		t.lose(cause) // again: the first call may have found the previous holder
	}
	return l
}

// lose ends the turn and its present hold by a loss.
func (t *turn) lose(cause error) {
	t.conclude(cause)
	t.mu.Lock()
	holder := t.holder
	t.mu.Unlock()
	lost := holder != nil && holder.finish(t.lossOf(cause))
	if lost && errors.Is(cause, errDeleted) {
		// The node is gone. But the session counts it (WithMaxNodes) until a delete of ours
		// has found that.
		t.remove(holder.ctx, nil)
	}
	if t.local != nil {
		t.local.turnOver(t)
	}
	if lost {
		holder.tell(t.lossOf(cause)) // comes last, since a hook can end the goroutine
	}
}

// lossOf returns a cause with the path of the lock that was lost.
func (t *turn) lossOf(cause error) error { return fmt.Errorf("lock %s: %w", t.info.Path, cause) }

// loseNode ends the turn because its node was deleted. If the holder has released its lease, the
// delete was ours, and loseNode changes nothing.
func (t *turn) loseNode() { t.lose(fmt.Errorf("%w: %w", session.ErrLost, errDeleted)) }

// release follows the release of a lease. It returns the removal of the node, or nil if the lock
// was handed over.
//
// When waiters of the Local remain, the node is deleted after their next contender has its place
// in the queue. So no contender that enters after the delete gets ahead of them.
func (t *turn) release(ctx context.Context) plumbing.Removal {
	var placed <-chan struct{}
	if t.local != nil {
		if t.local.handOver(t) {
			return nil
		}
		placed = t.local.turnOver(t)
	}
	t.conclude(ErrReleased)
	return t.remove(ctx, placed)
}

// remove has the node deleted once after is closed, or at once if after is nil. It is called once
// in a turn: after the release of the last lease, or after the loss of the node.
func (t *turn) remove(ctx context.Context, after <-chan struct{}) plumbing.Removal {
	r := t.a.removeAfter(ctx, after)
	select {
	case t.removal <- r:
	default: // the turn of a single lease: no shared contender asks for the removal
	}
	return r
}

// awaitGone waits until the node of a turn that is over is gone and the session no longer counts
// it, or until ctx ends. It is for the turn of a Local.
func (t *turn) awaitGone(ctx context.Context) {
	select {
	case r := <-t.removal:
		select {
		case <-r.Done():
		case <-ctx.Done():
		}
	case <-t.a.s.Done(): // the server deletes the node
	case <-ctx.Done():
	}
}

// stands reports whether the node is ours for certain, as far as this process knows.
func (t *turn) stands() bool {
	t.mu.Lock()
	own := t.own
	t.mu.Unlock()
	if own != nil && own.Event() == plumbing.WatchDeleted {
		return false
	}
	return t.life.Err() == nil && t.a.s.Err() == nil // in this order: the clock comes last
}
