package hold

import (
	"context"
	"errors"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// A hold that is lost keeps the slot until its Unlock, as the work that it protected may still
// be going on. That can take for ever, when the holder hangs. Meanwhile no other goroutine of
// this object may come in, so none may have a place in the queue either: once that were granted,
// it would keep out all other processes.

var (
	// errSlotLost says that the hold in the slot is lost.
	errSlotLost = errors.New("the hold in the slot is lost")

	// errLeaseLost says that a lease was lost before it could have the slot.
	errLeaseLost = errors.New("lease lost while another hold of this lock stood")
)

// lostInSlot returns the hold in the slot if it is lost, otherwise nil.
func (h *Holds[L]) lostInSlot() *Hold[L] {
	if !h.slot {
		return nil
	}
	h.mu.Lock()
	var held *Hold[L]
	if len(h.all) > 0 {
		held = h.all[0]
	}
	h.mu.Unlock()
	if held == nil || held.Lease.Err() == nil { // which may call hooks
		return nil
	}
	return held
}

// outlast waits until a lost hold has been unlocked. It fails when ctx ends or a manager is
// closed, and a try fails at once.
func (h *Holds[L]) outlast(ctx context.Context, lost *Hold[L], try bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if h.closed() {
		return session.ErrClosed
	}
	if try {
		return queue.ErrBusy
	}
	closing, stop := h.closing()
	defer stop()
	select {
	case <-lost.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-closing:
		return session.ErrClosed
	}
}

// enterOrLeave is enter that gives the lease up if a hook panics, or ends the goroutine: one that
// is told of a loss, of a part of this lease or of the one in the slot.
func (h *Holds[L]) enterOrLeave(ctx context.Context, lease L, own *Owner, try bool, count counter[L]) (*Hold[L], error) {
	returns := false
	defer func() {
		if !returns {
			giveUp(ctx, lease, nil)
		}
	}()
	held, err := h.enter(ctx, lease, own, try, count)
	returns = true
	return held, err
}

// enter takes the slot for a lease that was granted, and waits for it if need be. It fails
// when the lease cannot have it, and a try when it would have to wait.
func (h *Holds[L]) enter(ctx context.Context, lease L, own *Owner, try bool, count counter[L]) (*Hold[L], error) {
	for {
		if lease.Err() != nil {
			return nil, errLeaseLost
		}
		held, inSlot := h.add(lease, own, count)
		switch {
		case inSlot == nil:
			h.interruptAtLoss(held)
			return held, nil
		case try:
			return nil, queue.ErrBusy
		case inSlot.Lease.Err() != nil:
			return nil, errSlotLost
		}
		select {
		case <-inSlot.ended:
		case <-inSlot.Lease.Done():
		case <-lease.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
