package hold

import (
	"context"
	"errors"

	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
)

// Get waits for a lease, or tries to get one and returns [queue.ErrBusy].
type Get[L Lease] func(ctx context.Context) (L, error)

// request is what a Lock, TryLock or Do asks for.
type request[L Lease] struct {
	owner *Owner // nil: none, or owners do not count
	get   Get[L]
	try   bool // wait for no holder
	via   via
}

// Lock enters the hold of ctx's owner again, or gets a lease and waits for the slot. While the
// hold in the slot is lost, Lock has no lease: it gets none, and gives up the one it has.
func (h *Holds[L]) Lock(ctx context.Context, get Get[L]) (*Hold[L], error) {
	return h.lock(ctx, request[L]{owner: h.ownerOf(ctx), get: get, via: viaLock})
}

// TryLock is Lock without waiting for the slot. get must not wait for a holder either. TryLock
// returns false and nil if the lock is busy.
func (h *Holds[L]) TryLock(ctx context.Context, get Get[L]) (bool, error) {
	_, err := h.lock(ctx, request[L]{owner: h.ownerOf(ctx), get: get, try: true, via: viaLock})
	if errors.Is(err, queue.ErrBusy) {
		return false, nil
	}
	return err == nil, err
}

func (h *Holds[L]) ownerOf(ctx context.Context) *Owner {
	if h.apart {
		return nil
	}
	return OwnerOf(ctx)
}

func (h *Holds[L]) lock(ctx context.Context, r request[L]) (*Hold[L], error) {
	var pace rounds.Pace
	for {
		held, err := h.attempt(ctx, r)
		switch {
		case errors.Is(err, errSlotLost): // the next attempt waits for its Unlock
		case errors.Is(err, errLeaseLost):
			if err := pace.Wait(ctx, nil); err != nil {
				return nil, h.acquiring(err)
			}
		default:
			return held, err
		}
	}
}

// attempt returns errSlotLost or errLeaseLost if the call is to start over.
func (h *Holds[L]) attempt(ctx context.Context, r request[L]) (*Hold[L], error) {
	if held, err := h.reenter(ctx, r); held != nil || err != nil {
		return held, err
	}
	if h.Refuse != nil {
		if err := h.Refuse(ctx); err != nil {
			return nil, err
		}
	}
	if lost := h.lostInSlot(); lost != nil {
		if err := h.outlast(ctx, lost, r.try); err != nil {
			return nil, h.acquiring(err)
		}
		return nil, errSlotLost
	}
	lease, err := h.contend(ctx, r)
	if err != nil {
		return nil, err
	}
	held, err := h.enterOrLeave(ctx, lease, r)
	if err != nil {
		giveUp(ctx, lease, err)
		return nil, h.acquiring(err)
	}
	return held, nil
}

// reenter adds a call to the hold of the request's owner. It returns nil and nil if the owner
// has no hold.
func (h *Holds[L]) reenter(ctx context.Context, r request[L]) (*Hold[L], error) {
	held := h.Of(r.owner)
	if held == nil {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, h.acquiring(err)
	}
	lost := held.Lease.Err() // may call hooks, so not under h.mu
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case held.over():
		return nil, nil // unlocked in the meantime, which is no loss
	case lost != nil:
		return nil, h.acquiring(lost)
	}
	held.calls[r.via]++
	return held, nil
}

// giveUp releases a lease that was not returned to a caller. The removal of its node needs no
// help. But a try that found the lock busy waits for the removal, as a try in the queue does, so
// that the next try does not find the node.
func giveUp(ctx context.Context, lease Lease, why error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !errors.Is(why, queue.ErrBusy) {
		cancel()
	}
	_ = lease.Release(ctx) // may be pending, or lost
}
