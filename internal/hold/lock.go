package hold

import (
	"context"
	"errors"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// request is what a Lock, TryLock or Do asks for, and how far it has come.
type request[L Lease] struct {
	owner *Owner // nil: none, or owners do not count
	get   Get[L]
	try   bool // wait for no holder
	via   via

	getting Acquisition[L] // a Get that waits; nil if none does
	pace    *rounds.Pace   // of the leases that are lost at once; nil if there were none
}

// Lock enters the hold of ctx's owner again, or gets a lease and waits for the slot. While the
// hold in the slot is lost, Lock has no lease: it gets none, and gives up the one it has.
func (h *Holds[L]) Lock(ctx context.Context, get Get[L]) (*Hold[L], error) {
	return h.lock(ctx, get, viaLock)
}

// lock waits here, where the stack is small, for what may take long.
func (h *Holds[L]) lock(ctx context.Context, get Get[L], by via) (*Hold[L], error) {
	r := &request[L]{owner: h.ownerOf(ctx), get: get, via: by}
	for {
		held, err := h.advance(ctx, r)
		if !errors.Is(err, errWaits) {
			return held, err
		}
		r.getting.Wait()
	}
}

// TryLock is Lock without waiting for the slot. get must not wait for a holder either. TryLock
// returns false and nil if the lock is busy.
func (h *Holds[L]) TryLock(ctx context.Context, get Get[L]) (bool, error) {
	_, err := h.advance(ctx, &request[L]{owner: h.ownerOf(ctx), get: get, try: true, via: viaLock})
	if errors.Is(err, place.ErrBusy) {
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

// errWaits says that there is nothing to do before r.getting has waited.
var errWaits = errors.New("waits for others")

// advance goes on until there is a hold or an error, which can be errWaits.
func (h *Holds[L]) advance(ctx context.Context, r *request[L]) (*Hold[L], error) {
	for {
		held, err := h.attempt(ctx, r)
		switch {
		case errors.Is(err, errSlotLost): // the next attempt waits for its Unlock
		case errors.Is(err, errLeaseLost):
			if r.pace == nil {
				r.pace = &rounds.Pace{}
			}
			if err := r.pace.Wait(ctx, nil); err != nil {
				return nil, h.acquiring(err)
			}
		default:
			return held, err
		}
	}
}

// attempt returns errSlotLost or errLeaseLost if the call is to start over.
func (h *Holds[L]) attempt(ctx context.Context, r *request[L]) (*Hold[L], error) {
	if r.getting == nil {
		if held, err := h.prepare(ctx, r); held != nil || err != nil {
			return held, err
		}
	}
	lease, err := h.contend(ctx, r)
	if err != nil {
		return nil, err
	}
	held, err := h.enter(ctx, lease, r)
	if err != nil {
		giveUp(ctx, lease, err)
		return nil, h.acquiring(err)
	}
	return held, nil
}

// prepare does all that comes before the Get. It returns the hold of the request's owner if there is one.
func (h *Holds[L]) prepare(ctx context.Context, r *request[L]) (*Hold[L], error) {
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
	return nil, nil
}

// reenter adds a call to the hold of the request's owner. It returns nil and nil if the owner
// has no hold.
func (h *Holds[L]) reenter(ctx context.Context, r *request[L]) (*Hold[L], error) {
	held := h.Of(r.owner)
	if held == nil {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, h.acquiring(err)
	}
	lost := held.Lease.Err()
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

// giveUp releases a lease that was not returned to a caller, so its place is not kept. The removal of its node needs no
// help. But a try that found the lock busy waits for the removal, as a try in the queue does, so
// that the next try does not find the node.
func giveUp(ctx context.Context, lease Lease, why error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !errors.Is(why, place.ErrBusy) {
		cancel()
	}
	_ = lease.Release(ctx, place.Unwanted) // may be pending, or lost
}
