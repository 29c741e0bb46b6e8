package share

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
)

// UnlockPatience is how long an Unlock waits for the servers' answer. It is a variable for tests, most of which want the answer
// also on a busy machine.
var UnlockPatience = time.Second

// Unlock gives back one Lock, of the hold that chooseLocked returns. It waits for the servers' answer, for [UnlockPatience] at
// most and for no connection, or not at all if Async is set. It returns [ErrNotHeld], why the lock was lost before, or what the
// servers refuse.
func (h *Holds[L]) Unlock() error {
	h.mu.Lock()
	held := h.chooseLocked()
	if held == nil {
		h.mu.Unlock()
		return h.Failed("unlock", ErrNotHeld)
	}
	return h.giveBackAndUnlock(held, viaLock)
}

// chooseLocked returns the hold of which an Unlock, which does not say whose, gives back a Lock. It prefers a lost hold, so that
// Unlock frees nothing that a goroutine relies on while there is a hold on which none can rely. Then it prefers a hold without
// an owner, so that an owner's hold stays known as long as the owner may enter it again. Then it takes the oldest.
func (h *Holds[L]) chooseLocked() *Hold[L] {
	all := slices.DeleteFunc(slices.Clone(h.all), func(held *Hold[L]) bool { return held.calls[viaLock] == 0 })
	if len(all) == 0 {
		return nil
	}
	i := 0
	if len(all) > 1 { // otherwise without a look at the clock
		i = slices.IndexFunc(all, func(held *Hold[L]) bool { return held.Lease.Err() != nil })
		if i < 0 {
			i = slices.IndexFunc(all, func(held *Hold[L]) bool { return held.owner == nil })
		}
	}
	return all[max(0, i)]
}

// giveBackAndUnlock takes one call off a hold, and releases its lease after the last of them. It returns why the lease was lost,
// if it was. mu is locked, and unlocked afterwards.
func (h *Holds[L]) giveBackAndUnlock(held *Hold[L], by int) (err error) {
	held.calls[by]--
	last := held.calls == [2]int32{}
	if last {
		// The slot is free before the lease is released: the goroutine that takes it next has got its own lease from the servers.
		h.all = slices.DeleteFunc(h.all, func(o *Hold[L]) bool { return o == held })
		if held.ended != nil {
			close(held.ended)
		}
	}
	h.mu.Unlock()
	switch {
	case !last:
		if err = held.Lease.Err(); errors.Is(err, queue.ErrReleased) {
			err = nil // another call has been given back since, the last one
		}
	case h.Async:
		err = held.Lease.Unlock(0)
	default:
		err = held.Lease.Unlock(UnlockPatience)
	}
	if err == nil {
		return nil
	}
	return h.Failed("unlock", err)
}

// Do calls f while the lock is held, and unlocks also if f panics. It returns the error of f together with that of a loss: see
// endError. If another client asks for the lock, the context of f ends by [queue.ErrRevoked], which an error of f matches then.
// If the request has come before f is called, Do returns ErrRevoked and does not call f.
func (h *Holds[L]) Do(ctx context.Context, get Get[L], f func(context.Context) error) error {
	_, err := h.work(ctx, false, get, f)
	return err
}

// TryDo is Do without the wait. It returns false and nil, and does not call f, if the lock is busy.
func (h *Holds[L]) TryDo(ctx context.Context, get Get[L], f func(context.Context) error) (ran bool, err error) {
	return h.work(ctx, true, get, f)
}

// work takes the lock, calls f and gives the lock back. It reports whether it has called f.
func (h *Holds[L]) work(
	ctx context.Context, try bool, get Get[L], f func(context.Context) error,
) (ran bool, err error) {
	if f == nil {
		return false, h.Failed("acquire", misuse.Invalidf("Do of a nil function"))
	}
	held, err := h.take(ctx, try, viaDo, get)
	if held == nil {
		return false, err
	}
	var inside context.Context
	defer func() { // also if the caller's ctx panics before f is called
		if ran {
			err = withRevocation(ctx, inside, err)
		}
		h.mu.Lock()
		err = withEnd(ctx, err, h.giveBackAndUnlock(held, viaDo), held.Lease.Err())
	}()
	if held.Lease.IsRevoked() {
		return false, h.Failed("acquire", queue.ErrRevoked)
	}
	parent, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer held.Lease.AfterRevoke(func() { end(h.Failed("lock", queue.ErrRevoked)) })()
	inside, cancel := held.Lease.Context(parent)
	defer cancel()
	ran = true
	return ran, f(inside)
}
