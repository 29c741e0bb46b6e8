package share

import (
	"context"
	"errors"
	"slices"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
)

// Unlock gives back one Lock, of the hold that choose returns. The slot is free as soon as the lease has ended. Then Unlock
// waits for the servers' answer, for [UnlockPatience] at most and for no connection, or not at all if Async is set. It returns
// [ErrNotHeld], why the lock was lost before, or what the servers refuse.
func (h *Holds[L]) Unlock() error {
	for {
		held := h.choose()
		if held == nil {
			return h.unlocking(ErrNotHeld)
		}
		if err := h.giveBack(held, viaLock); !errors.Is(err, ErrNotHeld) {
			return err
		}
		// Another Unlock gave that one back first.
	}
}

// choose returns the hold of which an Unlock, which does not say whose, gives back a Lock. It prefers a lost hold, so that
// Unlock frees nothing that a goroutine relies on while there is a hold on which none can rely. Then it prefers a hold without
// an owner, so that an owner's hold stays known as long as the owner may enter it again. Then it takes the oldest.
func (h *Holds[L]) choose() *hold[L] {
	h.mu.Lock()
	all := slices.DeleteFunc(slices.Clone(h.all), func(held *hold[L]) bool { return held.calls[viaLock] == 0 })
	h.mu.Unlock()
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	slices.SortStableFunc(all, func(a, b *hold[L]) int { return a.owners() - b.owners() })
	lost := slices.IndexFunc(all, func(held *hold[L]) bool { return held.lease.Err() != nil })
	return all[max(0, lost)]
}

// owners returns how many owners the hold has: 0 or 1.
func (held *hold[L]) owners() int {
	if held.owner == nil {
		return 0
	}
	return 1
}

// giveBack takes one call off a hold, and releases its lease after the last of them. It returns why the lease was lost, if it
// was, and ErrNotHeld if there is no such call.
func (h *Holds[L]) giveBack(held *hold[L], by via) error {
	last, ok := h.remove(held, by)
	switch {
	case !ok:
		return h.unlocking(ErrNotHeld)
	case !last:
		if lost := held.lease.Err(); !errors.Is(lost, queue.ErrReleased) {
			return h.unlocking(lost)
		}
		return nil // another call has been given back since, the last one
	}
	// The slot is free before the lease is released: the goroutine that takes it next has got its own lease from the servers.
	if h.Async {
		return h.unlocking(held.lease.Unlock(0))
	}
	return h.unlocking(held.lease.Unlock(UnlockPatience))
}

var errNoFunction = misuse.Invalidf("Do of a nil function")

// Do calls f while the lock is held, and unlocks also if f panics. It returns the error of f together with that of a loss: see
// [EndError]. If another client asks for the lock, the context of f ends, with a cause that matches [queue.ErrRevoked], and an
// error of f then matches that too. If the request has come before f is called, Do returns ErrRevoked and does not call f.
func (h *Holds[L]) Do(ctx context.Context, get Get[L], f func(context.Context) error) error {
	if f == nil {
		return h.acquiring(errNoFunction)
	}
	held, err := h.take(ctx, false, viaDo, get)
	if err != nil {
		return err
	}
	_, err = h.work(ctx, held, f)
	return err
}

// TryDo is Do without the wait. It returns false and nil, and does not call f, if the lock is busy.
func (h *Holds[L]) TryDo(ctx context.Context, get Get[L], f func(context.Context) error) (ran bool, err error) {
	if f == nil {
		return false, h.acquiring(errNoFunction)
	}
	held, err := h.take(ctx, true, viaDo, get)
	if held == nil {
		return false, unlessBusy(err)
	}
	return h.work(ctx, held, f)
}

// work calls f within a hold, and gives it back. It reports whether it has called f.
func (h *Holds[L]) work(ctx context.Context, held *hold[L], f func(context.Context) error) (ran bool, err error) {
	var inside context.Context
	defer func() { // also if the caller's ctx panics before f is called
		err = withRevocation(ctx, inside, err)
		err = EndError(ctx, err, h.giveBack(held, viaDo), held.lease.Err())
	}()
	if held.lease.IsRevoked() {
		return false, h.acquiring(queue.ErrRevoked)
	}
	parent, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer held.lease.AfterRevoke(func() { end(&queue.OpError{Op: "lock", Path: h.Path, Err: queue.ErrRevoked}) })()
	inside, cancel := held.lease.Context(parent)
	defer cancel()
	ran = true
	return ran, f(inside)
}
