package hold

import (
	"context"
	"errors"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/session"
)

// A lost hold keeps the slot until its Unlock, as the work that it protected may still be going
// on. If the holder hangs, that can take for ever. Meanwhile no other goroutine can have the
// lock through this object, so none may have a place in the queue: once that place were granted,
// it would keep out all other processes.

var (
	// errSlotLost says that the hold in the slot is lost.
	errSlotLost = errors.New("the hold in the slot is lost")
	// errLeaseLost says that a lease was lost while it waited for the slot.
	errLeaseLost = errors.New("lease lost before the slot was free")
)

// lostInSlot returns the hold in the slot if it is lost, otherwise nil.
func (h *Holds[L]) lostInSlot() *Hold[L] {
	if !h.slot {
		return nil
	}
	all := h.standing()
	if len(all) == 0 || all[0].Lease.Err() == nil {
		return nil
	}
	return all[0]
}

// outlast waits for the Unlock of a lost hold. It fails when ctx ends or a manager is closed. A
// try fails at once.
func (h *Holds[L]) outlast(ctx context.Context, lost *Hold[L], try bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if h.closed() {
		return session.ErrClosed
	}
	if try {
		return place.ErrBusy
	}
	closing, stop := h.closing()
	defer stop()
	select {
	case <-lost.ended.Wait():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w (this process has lost the lock, and has not unlocked it yet)", ctx.Err())
	case <-closing:
		return session.ErrClosed
	}
}

// enter makes a granted lease a hold, and waits for the slot if it is taken. It fails with
// errLeaseLost or errSlotLost when one of the two is lost, and with ErrBusy when a try would
// have to wait.
func (h *Holds[L]) enter(ctx context.Context, lease L, r *request[L]) (*Hold[L], error) {
	for {
		if lease.Err() != nil {
			return nil, errLeaseLost
		}
		held, inSlot := h.add(lease, r)
		switch {
		case inSlot == nil:
			h.interruptAtLoss(held)
			return held, nil
		case r.try:
			return nil, place.ErrBusy
		case inSlot.Lease.Err() != nil:
			return nil, errSlotLost
		}
		select {
		case <-inSlot.ended.Wait():
		case <-inSlot.Lease.Done():
		case <-lease.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
