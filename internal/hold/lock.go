package hold

import (
	"cmp"
	"context"
	"errors"

	"github.com/turnstile-go/turnstile/internal/maxwait"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// request is what a Lock, TryLock or Do asks for, and how far it has come.
type request[L Lease] struct {
	owner *Owner // nil: none, or owners do not count
	try   bool   // wait for no holder
	via   via

	getting Acquisition[L] // a Get that waits; nil if none does
	behind  *Hold[L]       // was in the slot when the lease came; nil if none was, or once it has ended
	pace    *rounds.Pace   // of the leases that are lost at once; nil if there were none
}

// Lock enters the hold of ctx's owner again, or gets a lease and waits for the slot. While the
// hold in the slot is lost, Lock has no lease: it gets none, and gives up the one it has.
func (h *Holds[L]) Lock(ctx context.Context) error {
	_, err := h.lock(ctx, viaLock)
	return err
}

// lock waits here, where the stack is small, for what may take long.
func (h *Holds[L]) lock(ctx context.Context, by via) (*Hold[L], error) {
	ctx, end := maxwait.Begin(ctx)
	r := &request[L]{owner: h.ownerOf(ctx), via: by}
	for {
		held, waits, err := h.advance(ctx, r)
		if !waits {
			return held, end(err)
		}
		r.getting.Wait()
	}
}

// TryLock is Lock without waiting for the slot or a holder. It returns false and nil if the lock is
// busy.
func (h *Holds[L]) TryLock(ctx context.Context) (bool, error) {
	held, err := h.try(ctx, viaLock)
	return held != nil, err
}

// try returns nil and nil if the lock is busy.
func (h *Holds[L]) try(ctx context.Context, by via) (*Hold[L], error) {
	ctx, end := maxwait.Begin(ctx)
	held, _, err := h.advance(ctx, &request[L]{owner: h.ownerOf(ctx), try: true, via: by})
	if err = end(err); errors.Is(err, place.ErrBusy) {
		return nil, nil
	}
	return held, err
}

func (h *Holds[L]) ownerOf(ctx context.Context) *Owner {
	if h.apart {
		return nil
	}
	return OwnerOf(ctx)
}

// advance goes on until there is a hold or an error. With waits as true there is nothing to do before r.getting has
// waited.
func (h *Holds[L]) advance(ctx context.Context, r *request[L]) (held *Hold[L], waits bool, err error) {
	for {
		if r.getting == nil {
			if held, err = h.prepare(ctx, r); held != nil || err != nil {
				return held, false, err
			}
		}
		lease, out, err := h.contend(ctx, r)
		switch {
		case err != nil:
			return nil, false, err
		case out == waiting:
			return nil, true, nil
		case out == interrupted:
			continue // its Unlock has to come first
		}
		if held, err = h.enter(ctx, lease, r); held != nil || err != nil {
			return held, false, err
		}
	}
}

// enter makes a granted lease a hold. It returns nil and nil if the call has to start over: the lease was lost
// meanwhile, or the slot is taken, whose hold must have lost the lock. Then the lease is given up.
func (h *Holds[L]) enter(ctx context.Context, lease L, r *request[L]) (held *Hold[L], err error) {
	lost := lease.Err() != nil
	if !lost {
		if held, r.behind = h.add(lease, r); held != nil {
			h.interruptAtLoss(held)
			return held, nil
		}
	}
	if !lost && r.try {
		err = place.ErrBusy
	}
	giveUp(ctx, lease, err) // before the pause: of several locks only one may be lost, and other processes want the rest
	if lost {
		if r.pace == nil {
			r.pace = &rounds.Pace{}
		}
		err = r.pace.Wait(ctx, nil)
	}
	if err != nil {
		return nil, h.acquiring(err)
	}
	return nil, nil
}

// prepare does all that comes before the Get: it waits for the Unlock of a hold that is lost. It returns the hold of
// the request's owner if there is one.
func (h *Holds[L]) prepare(ctx context.Context, r *request[L]) (*Hold[L], error) {
	for {
		if held, err := h.reenter(ctx, r); held != nil || err != nil {
			return held, err
		}
		if h.Refuse != nil {
			if err := h.Refuse(ctx); err != nil {
				return nil, err
			}
		}
		lost := cmp.Or(r.behind, h.lostInSlot())
		if lost == nil {
			return nil, nil
		}
		if err := h.awaitUnlock(ctx, lost, r.try); err != nil {
			return nil, h.acquiring(err)
		}
		r.behind = nil
	}
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
	if errors.Is(why, place.ErrBusy) {
		_ = lease.Release(ctx, place.Unwanted) // may be pending, or lost
		return
	}
	_ = lease.Unlock(place.Unwanted, false)
}
