package share

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

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
				return nil, end(h.acquiring(err))
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
			return nil, end(h.acquiring(queue.ErrBusy))
		}
		giveUp(lease) // before the pause: of several locks only one may be lost, and other processes want the rest
		if lost {
			if err := pace.Wait(ctx, nil); err != nil {
				return nil, end(h.acquiring(err))
			}
		}
	}
}

// giveUp gives up a lease that no caller has got, and waits for nothing. The removal of its node needs no help.
func giveUp[L Lease](lease L) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = lease.GiveUp(ended)
}

// enterAgain adds a call to the hold of an owner. It returns nil and nil if the owner has no hold.
func (h *Holds[L]) enterAgain(ctx context.Context, owner *queue.Owner, by via) (*hold[L], error) {
	held := h.of(owner)
	if held == nil {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, h.acquiring(err)
	}
	lost := held.lease.Err()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case held.over():
		return nil, nil // unlocked in the meantime, which is no loss
	case lost != nil:
		return nil, h.acquiring(lost)
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
	if err := ctx.Err(); err != nil {
		return err
	}
	if h.Manager.State() == session.Closed {
		return session.ErrClosed
	}
	if try {
		return queue.ErrBusy
	}
	closing, stop := h.closing()
	defer stop()
	select {
	case <-lost.ended.Wait():
		return nil
	case <-ctx.Done():
		return &queue.WaitError{Err: ctx.Err(), Reason: "this process has lost the lock, and has not unlocked it yet"}
	case <-closing:
		return session.ErrClosed
	}
}

// closing returns a channel that is closed as soon as the manager is. The caller calls stop when it is done with it.
func (h *Holds[L]) closing() (closed <-chan struct{}, stop func()) {
	ch := make(chan struct{})
	tell := sync.OnceFunc(func() { close(ch) })
	return ch, h.Manager.Subscribe(func(c session.Change) {
		if c.To == session.Closed {
			tell()
		}
	})
}

// errInterrupted says that a Get has ended because the hold in the slot is lost.
var errInterrupted = errors.New("interrupted")

// get calls get, which can be interrupted if the lease consists of several.
func (h *Holds[L]) get(ctx context.Context, try bool, get Get[L]) (lease L, err error) {
	if !h.Several || try {
		return get(ctx, try)
	}
	inside, cancel := context.WithCancel(ctx)
	defer cancel()
	defer h.whenInterrupted(cancel)()
	if h.lostInSlot() != nil { // perhaps lost before there was a call to interrupt
		return lease, errInterrupted
	}
	lease, err = get(inside, false)
	if err != nil && inside.Err() != nil && ctx.Err() == nil {
		return lease, errInterrupted
	}
	return lease, err
}

// whenInterrupted has f called at the next interruption. stop cancels that.
func (h *Holds[L]) whenInterrupted(f func()) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.getting == nil {
		h.getting = make(map[*int]func())
	}
	key := new(int)
	h.getting[key] = f
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.getting, key)
	}
}

// interruptAtLoss interrupts the calls of Get when a hold ends before its Unlock.
func (h *Holds[L]) interruptAtLoss(held *hold[L]) {
	if !h.Several {
		return
	}
	held.lease.AfterEnd(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if slices.Contains(h.all, held) {
			for _, interrupt := range h.getting {
				interrupt()
			}
		}
	})
}
