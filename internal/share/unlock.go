package share

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
)

// UnlockPatience is how long an Unlock waits for the servers. It is a variable for tests.
var UnlockPatience = time.Second

// Unlock gives back one Lock, as Unlock of zklock.Mutex does.
func (h *Holds[L]) Unlock() error {
	h.mu.Lock()
	held := h.chooseLocked()
	if held == nil {
		h.mu.Unlock()
		return h.Failed("unlock", ErrNotHeld)
	}
	return h.giveBackAndUnlock(held, viaLock)
}

// chooseLocked returns the hold of which an Unlock, which does not say whose, gives back a Lock. It prefers a lost
// one, on which nobody can rely, and then one without an owner, so that an owner's hold stays known. Then it takes
// the oldest.
func (h *Holds[L]) chooseLocked() *Hold[L] {
	all := slices.DeleteFunc(slices.Clone(h.all), func(held *Hold[L]) bool { return held.calls[viaLock] == 0 })
	if len(all) == 0 {
		return nil
	}
	i := 0
	if len(all) > 1 {
		i = slices.IndexFunc(all, func(held *Hold[L]) bool { return held.Lease.Err() != nil })
		if i < 0 {
			i = slices.IndexFunc(all, func(held *Hold[L]) bool { return held.owner == nil })
		}
	}
	return all[max(0, i)]
}

// giveBackAndUnlock returns why the lease was lost, if it was.
func (h *Holds[L]) giveBackAndUnlock(held *Hold[L], by int) (err error) {
	held.calls[by]--
	last := held.calls == [2]int32{}
	if last {
		// The slot is free before the release: the goroutine that takes it next has got its own lease from the
		// servers.
		h.all = slices.DeleteFunc(h.all, func(o *Hold[L]) bool { return o == held })
		if held.ended != nil {
			close(held.ended)
		}
	}
	h.mu.Unlock()
	switch {
	case !last:
		if err = held.Lease.Err(); errors.Is(err, queue.ErrReleased) {
			err = nil // the last call has been given back since
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

// Do is as that of zklock.Mutex: see endError and [queue.ErrRevoked].
func (h *Holds[L]) Do(ctx context.Context, get Get[L], f func(context.Context) error) error {
	_, err := h.work(ctx, false, get, f)
	return err
}

// TryDo is Do that waits for nobody. It returns false and nil if it is busy.
func (h *Holds[L]) TryDo(ctx context.Context, get Get[L], f func(context.Context) error) (ran bool, err error) {
	return h.work(ctx, true, get, f)
}

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
	defer func() { // also if the caller's ctx panics
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
