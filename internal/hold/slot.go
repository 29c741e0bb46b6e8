package hold

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/session"
)

// A lost hold keeps the slot until its Unlock, as the work that it protected may still be going
// on. If the holder hangs, that can take for ever. Meanwhile no other goroutine can have the
// lock through this object, so none may have a place in the queue: once that place were granted,
// it would keep out all other processes.

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

// awaitUnlock waits for the Unlock of a lost hold. It fails when ctx ends or the manager is closed. A
// try fails at once.
func (h *Holds[L]) awaitUnlock(ctx context.Context, lost *Hold[L], try bool) error {
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
		return &kinds.WaitError{Err: ctx.Err(), Reason: "this process has lost the lock, and has not unlocked it yet"}
	case <-closing:
		return session.ErrClosed
	}
}
