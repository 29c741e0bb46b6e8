package hold

import (
	"context"
	"errors"
	"slices"

	"github.com/turnstile-go/turnstile/internal/place"
)

// Unlock gives back one Lock, of the hold that next chooses.
func (h *Holds[L]) Unlock() error {
	for {
		held := h.next()
		if held == nil {
			return h.unlocking(ErrNotHeld)
		}
		if err := h.giveBack(held, viaLock, place.Done); !errors.Is(err, ErrNotHeld) {
			return err
		}
		// Another Unlock gave that one back first.
	}
}

// next returns the hold of which an Unlock, which does not say whose, gives back a Lock. It
// prefers a lost hold, so that Unlock frees nothing that a goroutine relies on while there is a
// hold on which none can rely. Then it prefers a hold without an owner, so that an owner's hold
// stays known as long as the owner may enter it again. Then it takes the oldest.
func (h *Holds[L]) next() *Hold[L] {
	all := h.locked()
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	all = ownerlessFirst(all)
	lost := func(held *Hold[L]) bool { return held.Lease.Err() != nil }
	return all[max(0, slices.IndexFunc(all, lost))]
}

func ownerlessFirst[L Lease](all []*Hold[L]) []*Hold[L] {
	var ownerless, owned []*Hold[L]
	for _, held := range all {
		if held.owner == nil {
			ownerless = append(ownerless, held)
		} else {
			owned = append(owned, held)
		}
	}
	return append(ownerless, owned...)
}

// locked returns the holds that have a Lock to give back.
func (h *Holds[L]) locked() []*Hold[L] {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.all), func(held *Hold[L]) bool { return held.calls[viaLock] == 0 })
}

// giveBack takes one call off a hold, and releases its lease after the last of them, with end. It returns
// why the lease was lost, if it was. It returns ErrNotHeld if there is no such call.
func (h *Holds[L]) giveBack(held *Hold[L], by via, end place.End) error {
	last, ok := h.remove(held, by)
	switch {
	case !ok:
		return h.unlocking(ErrNotHeld)
	case !last:
		if lost := held.Lease.Err(); !errors.Is(lost, place.ErrReleased) {
			return h.unlocking(lost)
		}
		return nil // another call has been given back since, the last one
	}
	// The slot is free before the lease is released: the goroutine that takes it next has got
	// its own lease from the server.
	return h.unlocking(held.Lease.Unlock(end, !h.Async))
}

// Do calls f while the lock is held, and unlocks also if f panics. It returns the error of f
// with that of a loss: see endError.
func (h *Holds[L]) Do(ctx context.Context, f func(context.Context) error) error {
	held, err := h.lock(ctx, viaDo)
	if err != nil {
		return err
	}
	_, err = h.work(ctx, held, f)
	return err
}

// TryDo is Do without the wait. It returns false and nil, and does not call f, if the lock is busy.
func (h *Holds[L]) TryDo(ctx context.Context, f func(context.Context) error) (ran bool, err error) {
	held, err := h.try(ctx, viaDo)
	if held == nil {
		return false, err
	}
	return h.work(ctx, held, f)
}

// work calls f within a hold, and gives it back. It reports whether it has called f, which it does not if another
// client has asked for the lock already.
func (h *Holds[L]) work(ctx context.Context, held *Hold[L], f func(context.Context) error) (ran bool, err error) {
	used, cancel := place.Unwanted, context.CancelFunc(func() {})
	defer func() { cancel() }()
	var inside context.Context
	defer func() { // also if the caller's ctx panics before f is called
		err = withCause(ctx, inside, err)
		err = withEnd(ctx, err, h.giveBack(held, viaDo, used), held.Lease.Err())
	}()
	if held.Lease.Revocation().Has() {
		return false, h.acquiring(place.ErrRevoked)
	}
	inside, cancel = held.Lease.Work(ctx)
	used = place.Done
	return true, f(inside)
}
