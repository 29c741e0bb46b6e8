package share

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Acquire gets a lease: from the turns that goroutines share, or by a node of its own if turns is nil.
func Acquire(ctx context.Context, q *queue.Queue, r queue.Request, turns *Turns, try bool) (*queue.Lease, error) {
	switch {
	case turns != nil:
		return turns.Acquire(ctx, try)
	case try:
		return q.TryAcquire(ctx, r)
	}
	return q.Acquire(ctx, r)
}

// Lock enters the hold of ctx's owner again, or gets a lease and waits for the slot. While the hold in the slot is lost, Lock
// has no lease: it gets none, and gives up the one that it has.
func (h *Holds[L]) Lock(ctx context.Context, get Get[L]) error {
	_, err := h.take(ctx, false, viaLock, get)
	return err
}

// TryLock is Lock without the wait for the slot or a holder. It returns false and nil if the lock is busy.
func (h *Holds[L]) TryLock(ctx context.Context, get Get[L]) (bool, error) {
	held, err := h.take(ctx, true, viaLock, get)
	return held != nil, unlessBusy(err)
}

// unlessBusy returns the error of a try, for which busy is no error.
func unlessBusy(err error) error {
	if errors.Is(err, queue.ErrBusy) {
		return nil
	}
	return err
}

// take returns a hold with one more call.
//
// A lost hold keeps the slot until its Unlock, as the work that it protected may still be going on. If the holder hangs, that
// can take for ever. Meanwhile no other goroutine can have the lock through this object, so none may have a node in the
// queue: once that were granted, it would keep out all other processes.
func (h *Holds[L]) take(ctx context.Context, try bool, by via, get Get[L]) (*hold[L], error) {
	ctx, end := queue.BeginWait(ctx)
	owner := queue.OwnerOf(ctx)
	var behind *hold[L] // was in the slot when a lease came; nil once it has ended
	for pace := (rounds.Pace{}); ; {
		if held, err := h.enterAgain(ctx, owner, by); held != nil || err != nil {
			return held, end(err)
		}
		if lost := cmp.Or(behind, h.lostInSlot()); lost != nil {
			if err := h.awaitUnlock(ctx, lost, try); err != nil {
				return nil, end(h.failed("acquire", err))
			}
			behind = nil
			continue
		}
		lease, err := h.get(ctx, try, get)
		switch {
		case errors.Is(err, errInterrupted):
			continue // the Unlock of the hold in the slot has to come first
		case err != nil:
			return nil, end(err)
		}
		lost := lease.Err() != nil
		if !lost {
			var held *hold[L]
			if held, behind = h.add(lease, owner, by); held != nil {
				h.interruptAtLoss(held)
				return held, end(nil)
			}
			// The slot is taken. Its hold must have lost the lock, or the lease would not have been granted.
		}
		if try && !lost {
			_ = lease.GiveUp(ctx) // it waits for the removal, so that the next try does not find the node
			return nil, end(h.failed("acquire", queue.ErrBusy))
		}
		// Before the pause: of several locks only one may be lost, and other processes want the rest. Their removals need no help.
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = lease.GiveUp(ended)
		if lost {
			if err := pace.Wait(ctx, nil); err != nil {
				return nil, end(h.failed("acquire", err))
			}
		}
	}
}

// enterAgain adds a call to the hold of an owner. It returns nil and nil if the owner has no hold.
func (h *Holds[L]) enterAgain(ctx context.Context, owner *queue.Owner, by via) (*hold[L], error) {
	held := h.of(owner)
	if held == nil {
		return nil, nil
	}
	err := cmp.Or(ctx.Err(), held.lease.Err())
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !slices.Contains(h.all, held):
		return nil, nil // unlocked in the meantime, which is no loss
	case err != nil:
		return nil, h.failed("acquire", err)
	}
	held.calls[by]++
	return held, nil
}

// lostInSlot returns the hold in the slot if it is lost, otherwise nil.
func (h *Holds[L]) lostInSlot() *hold[L] {
	if !h.Slot {
		return nil
	}
	all := h.standing()
	if len(all) == 0 || all[0].lease.Err() == nil {
		return nil
	}
	return all[0]
}

// awaitUnlock waits for the Unlock of a lost hold. It fails when ctx ends or the manager is closed. A try fails at once.
func (h *Holds[L]) awaitUnlock(ctx context.Context, lost *hold[L], try bool) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case h.Manager.State() == session.Closed:
		return session.ErrClosed
	case try:
		return queue.ErrBusy
	}
	h.mu.Lock()
	if !slices.Contains(h.all, lost) {
		h.mu.Unlock()
		return nil
	}
	if lost.ended == nil {
		lost.ended = make(chan struct{})
	}
	ended := lost.ended
	h.mu.Unlock()
	closed, stop := h.closing()
	defer stop()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return &queue.WaitError{Err: ctx.Err(), Reason: "this process has lost the lock, and has not unlocked it yet"}
	case <-closed:
		return session.ErrClosed
	}
}

// closing returns a channel that is closed as soon as the manager is. The caller calls stop when it is done with it.
func (h *Holds[L]) closing() (closed <-chan struct{}, stop func()) {
	ch := make(chan struct{})
	return ch, h.Manager.Subscribe(func(c session.Change) {
		if c.To == session.Closed {
			close(ch) // no change comes after this one
		}
	})
}

// errInterrupted says that a Get has ended because the hold in the slot is lost.
var errInterrupted = errors.New("interrupted")

// get calls get, which the loss of the hold in the slot interrupts if the lease consists of several.
func (h *Holds[L]) get(ctx context.Context, try bool, get Get[L]) (lease L, err error) {
	if !h.Several || try {
		return get(ctx, try)
	}
	h.mu.Lock()
	if h.loss == nil {
		h.loss, h.endLoss = context.WithCancel(context.Background())
	}
	loss := h.loss
	h.mu.Unlock()
	if h.lostInSlot() != nil { // perhaps before anybody has asked for loss
		return lease, errInterrupted
	}
	inside, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(loss, cancel)()
	lease, err = get(inside, false)
	if err != nil && inside.Err() != nil && ctx.Err() == nil {
		return lease, errInterrupted
	}
	return lease, err
}

// interruptAtLoss interrupts the calls of Get when a hold ends before its Unlock.
func (h *Holds[L]) interruptAtLoss(held *hold[L]) {
	if !h.Several {
		return
	}
	held.lease.AfterEnd(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.loss != nil && slices.Contains(h.all, held) {
			h.endLoss()
			h.loss = nil
		}
	})
}
