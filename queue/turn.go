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

// turn is a node that was granted, from then until it is given up or lost. It is held by one
// lease at a time: most turns by one alone, those of a [Local] by one after another.
type turn struct {
	a     *attempt // nothing in it changes any more
	info  session.HoldInfo
	local *Local // whose turn it is; nil: that of one lease

	// life ends with the turn. It has the values of the acquisition, for the hooks.
	life context.Context
	end  context.CancelCauseFunc

	known    chan struct{} // closed when czxid or tokenErr is set
	czxid    int64
	tokenErr error

	pace rounds.Pace // of watchOwn, used by one call at a time

	removal chan plumbing.Removal // gets that of the node; room for one. nil: of one lease

	mu     sync.Mutex
	holder *Lease         // the present one, or the last; nil: the first is still to begin
	own    plumbing.Watch // on the node, as last set; nil: none is
	asked  bool           // to give the lock up
	delay  *time.Timer    // until the first watch is set; nil: one was, as the turn began

	leaveSession, leaveNode func() // what guard has to undo
}

// newTurn begins the turn of an attempt that was granted. guard and then begin have to follow.
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

// begin begins a hold, with the context of who is to have it, and in the goroutine of that one:
// where a hook panics there, the turn goes on without it. The hold before has ended.
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
		t.lose(cause) // which may have found the lease before in its place
	}
	return l
}

// lose ends the turn, and the hold of whoever has it, by a loss.
func (t *turn) lose(cause error) {
	t.conclude(cause)
	t.mu.Lock()
	holder := t.holder
	t.mu.Unlock()
	lost := holder != nil && holder.finish(t.lossOf(cause))
	if lost && errors.Is(cause, errDeleted) {
		// There is nothing to delete any more, but the session counts the node as one of
		// its own (WithMaxNodes) until a delete of ours has found it gone.
		t.remove(holder.ctx, nil)
	}
	if t.local != nil {
		t.local.over(t)
	}
	if lost {
		holder.tell(t.lossOf(cause)) // last, since a hook can end the goroutine
	}
}

// lossOf says which lock was lost.
func (t *turn) lossOf(cause error) error { return fmt.Errorf("lock %s: %w", t.info.Path, cause) }

// loseNode ends the turn since somebody deleted the node: we ourselves, if the holder has
// released it.
func (t *turn) loseNode() { t.lose(fmt.Errorf("%w: %w", session.ErrLost, errDeleted)) }

// release is called when the holder has released its lease. It returns the removal of the
// node, or nil if the next one of a [Local] has it. Who still waits there stands in the queue
// again before the node goes, so that nobody who enters after that gets ahead.
func (t *turn) release(ctx context.Context) plumbing.Removal {
	var after <-chan struct{}
	if t.local != nil {
		if t.local.pass(t) {
			return nil
		}
		after = t.local.over(t)
	}
	t.conclude(ErrReleased)
	return t.remove(ctx, after)
}

// remove has the node deleted, once after is closed. It is called once: for whoever released
// the lease, or lost it with the node.
func (t *turn) remove(ctx context.Context, after <-chan struct{}) plumbing.Removal {
	r := t.a.removeAfter(ctx, after)
	select {
	case t.removal <- r:
	default: // nobody of the process has the next turn
	}
	return r
}

// awaitGone waits, as ctx allows, until the node of a turn that is over is gone, and no longer
// counted by the session.
func (t *turn) awaitGone(ctx context.Context) {
	select {
	case r := <-t.removal:
		select {
		case <-r.Done():
		case <-ctx.Done():
		}
	case <-t.a.s.Done(): // the node goes with it
	case <-ctx.Done():
	}
}

// stands reports whether the node is ours for certain, as far as is known now.
func (t *turn) stands() bool {
	t.mu.Lock()
	own := t.own
	t.mu.Unlock()
	if own != nil && own.Event() == plumbing.WatchDeleted {
		return false
	}
	return t.life.Err() == nil && t.a.s.Err() == nil // the clock is asked last
}
