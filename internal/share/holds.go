package share

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// ErrNotHeld is returned by Unlock when there is no Lock to give back.
var ErrNotHeld = errors.New("lock is not held")

// Lease is what a hold has until its end: a [queue.Lease], or several as one.
type Lease interface {
	Err() error
	Done() <-chan struct{}
	AfterEnd(f func()) (stop func())
	Context(parent context.Context) (context.Context, context.CancelFunc)
	IsRevoked() bool
	AfterRevoke(f func()) (stop func())
	Unlock(patience time.Duration) error
	GiveUp(ctx context.Context) error
}

// Get gets a lease for a hold. With try it waits for no other contender, and fails with [queue.ErrBusy].
type Get[L Lease] func(ctx context.Context, try bool) (L, error)

// Holds are the holds of one lock object, by Lock, TryLock, Do and TryDo. The exported fields are set before the first use. The
// methods may be called by several goroutines at once.
type Holds[L Lease] struct {
	Path    string // of the lock, for messages
	Manager *session.Manager

	// Slot says that there is one hold at a time. The next begins after the Unlock of the one before it, even if that was lost.
	Slot bool
	// Several says that a lease consists of several, which are taken one after another. A call that has some of them and waits
	// for the next is interrupted when the hold in the slot is lost, since other processes may want those that it has.
	Several bool
	// Apart says that an owner does not enter its hold again: each call gets a lease of its own.
	Apart bool
	// Async says that nobody waits for the servers when a hold is given back.
	Async bool
	// Refuse, if it is set, returns an error if an owner cannot get a hold, for what it holds besides.
	Refuse func(ctx context.Context, owner *queue.Owner) error

	mu   sync.Mutex
	all  []*Hold[L] // oldest first
	loss *loss      // the next one of a hold, if Several; nil: nobody waits for it
}

// loss is a context that ends with the next loss of a hold.
type loss struct {
	context.Context
	end context.CancelFunc
}

// Hold is one lease and the calls that share it: the one that got it, and those by which the same owner entered it again. It
// ends when each of them has been given back.
type Hold[L Lease] struct {
	Lease L

	owner *queue.Owner  // nil: nobody enters it again
	calls [2]int32      // not yet given back, via Lock and via Do; guarded by Holds.mu
	ended chan struct{} // closed when it has ended; guarded by Holds.mu; nil: nobody waits
}

// A call enters a hold via Lock or Do. Unlock gives back a Lock, and never a Do, which gives back itself.
const (
	viaLock = iota
	viaDo
)

// Of returns the hold of an owner, lost or not. It returns nil if the owner has none, or is nil.
func (h *Holds[L]) Of(owner *queue.Owner) *Hold[L] {
	if owner == nil || h.Apart {
		return nil
	}
	for _, held := range h.standing() {
		if held.owner == owner {
			return held
		}
	}
	return nil
}

// Any reports whether there is a hold that has not been given back, lost or not.
func (h *Holds[L]) Any() bool { return len(h.standing()) > 0 }

// Held reports whether there is a hold that is not lost.
func (h *Holds[L]) Held() bool {
	return slices.ContainsFunc(h.standing(), func(held *Hold[L]) bool { return held.Lease.Err() == nil })
}

// Done returns a channel that is closed when the latest hold is unlocked or lost. It is closed already if there is no hold.
func (h *Holds[L]) Done() <-chan struct{} {
	if all := h.standing(); len(all) > 0 {
		return all[len(all)-1].Lease.Done()
	}
	ended := make(chan struct{})
	close(ended)
	return ended
}

// standing returns the holds that have not been given back, lost or not.
func (h *Holds[L]) standing() []*Hold[L] {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

// Lock enters the hold of ctx's owner again, or gets a lease and waits for the slot.
func (h *Holds[L]) Lock(ctx context.Context, get Get[L]) error {
	_, err := h.take(ctx, false, viaLock, get)
	return err
}

// TryLock is Lock without the wait for the slot or a holder. It returns false and nil if the lock is busy.
func (h *Holds[L]) TryLock(ctx context.Context, get Get[L]) (bool, error) {
	held, err := h.take(ctx, true, viaLock, get)
	return held != nil, err
}

// take returns a hold with one more call. A try returns nil and nil if the lock is busy.
//
// A lost hold keeps the slot until its Unlock, as the work that it protected may still be going on. If the holder hangs, that
// can take for ever. Meanwhile no other goroutine can have the lock through this object, so none may have a node in the
// queue: once that were granted, it would keep out all other processes.
func (h *Holds[L]) take(ctx context.Context, try bool, by int, get Get[L]) (_ *Hold[L], err error) {
	ctx, end := queue.BeginWait(ctx)
	defer func() {
		if err = end(err); try && errors.Is(err, queue.ErrBusy) {
			err = nil
		}
	}()
	owner := queue.OwnerOf(ctx)
	if h.Several && !try {
		get = h.untilLoss(get)
	}
	var behind *Hold[L] // was in the slot when a lease came; nil once it has ended
	for pace := (rounds.Pace{}); ; {
		if owner != nil {
			held, err := h.enterAgain(ctx, owner, by)
			if held == nil && err == nil && h.Refuse != nil {
				err = h.Refuse(ctx, owner)
			}
			if held != nil || err != nil {
				return held, err
			}
		}
		if lost := cmp.Or(behind, h.lostInSlot()); lost != nil {
			if err := h.awaitUnlock(ctx, lost, try); err != nil {
				return nil, h.Failed("acquire", err)
			}
			behind = nil
			continue
		}
		lease, err := get(ctx, try)
		switch {
		case errors.Is(err, errInterrupted):
			continue // the Unlock of the hold in the slot has to come first
		case err != nil:
			return nil, err
		}
		lost := lease.Err() != nil
		if !lost {
			var held *Hold[L]
			if held, behind = h.add(lease, owner, by); held != nil {
				return held, nil
			}
			// The slot is taken. Its hold must have lost the lock, or the lease would not have been granted.
		}
		if try && !lost {
			_ = lease.GiveUp(ctx) // it waits for the removal, so that the next try does not find the node
			return nil, h.Failed("acquire", queue.ErrBusy)
		}
		// Before the pause: of several locks only one may be lost, and other processes want the rest. Their removals need no help.
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = lease.GiveUp(ended)
		if lost {
			if err := pace.Wait(ctx, nil); err != nil {
				return nil, h.Failed("acquire", err)
			}
		}
	}
}

// enterAgain adds a call to the hold of an owner. It returns nil and nil if the owner has no hold.
func (h *Holds[L]) enterAgain(ctx context.Context, owner *queue.Owner, by int) (*Hold[L], error) {
	held := h.Of(owner)
	if held == nil {
		return nil, nil
	}
	err := cmp.Or(ctx.Err(), held.Lease.Err())
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !slices.Contains(h.all, held):
		return nil, nil // unlocked in the meantime, which is no loss
	case err != nil:
		return nil, h.Failed("acquire", err)
	}
	held.calls[by]++
	return held, nil
}

// add makes a lease a hold. If there is one in the slot already, it returns that and adds nothing.
func (h *Holds[L]) add(lease L, owner *queue.Owner, by int) (held, inSlot *Hold[L]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Slot && len(h.all) > 0 {
		return nil, h.all[0]
	}
	held = &Hold[L]{Lease: lease, owner: owner}
	held.calls[by]++
	h.all = append(h.all, held)
	if h.Several {
		lease.AfterEnd(func() { h.interrupt(held) })
	}
	return held, nil
}

// lostInSlot returns the hold in the slot if it is lost, otherwise nil.
func (h *Holds[L]) lostInSlot() *Hold[L] {
	if !h.Slot {
		return nil
	}
	if all := h.standing(); len(all) > 0 && all[0].Lease.Err() != nil {
		return all[0]
	}
	return nil
}

// awaitUnlock waits for the Unlock of a lost hold, until ctx ends or the manager is closed. A try fails at once.
func (h *Holds[L]) awaitUnlock(ctx context.Context, lost *Hold[L], try bool) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case h.Manager.State() == session.Closed:
		return session.ErrClosed
	case try:
		return queue.ErrBusy
	}
	h.mu.Lock()
	if lost.ended == nil {
		lost.ended = make(chan struct{})
	}
	ended, stands := lost.ended, slices.Contains(h.all, lost)
	h.mu.Unlock()
	if !stands {
		return nil
	}
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

// closing returns a channel that is closed as soon as the manager is.
func (h *Holds[L]) closing() (closed <-chan struct{}, stop func()) {
	ch := make(chan struct{})
	return ch, h.Manager.Subscribe(func(c session.Change) {
		if c.To == session.Closed {
			close(ch) // no change comes after this one
		}
	})
}

var errInterrupted = errors.New("interrupted") // of a Get, by the loss of the hold in the slot

// untilLoss returns a get that fails with errInterrupted when the hold in the slot is lost.
func (h *Holds[L]) untilLoss(get Get[L]) Get[L] {
	return func(ctx context.Context, try bool) (lease L, err error) {
		h.mu.Lock()
		if h.loss == nil {
			ctx, end := context.WithCancel(context.Background())
			h.loss = &loss{ctx, end}
		}
		next := h.loss
		h.mu.Unlock()
		if h.lostInSlot() != nil { // perhaps before anybody has asked for loss
			return lease, errInterrupted
		}
		inside, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(next, cancel)()
		lease, err = get(inside, try)
		if err != nil && inside.Err() != nil && ctx.Err() == nil {
			err = errInterrupted
		}
		return lease, err
	}
}

// interrupt interrupts the calls of Get when a hold has ended before its Unlock.
func (h *Holds[L]) interrupt(ended *Hold[L]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.loss != nil && slices.Contains(h.all, ended) {
		h.loss.end()
		h.loss = nil
	}
}

// Failed adds the operation and the path to an error, if there is one.
func (h *Holds[L]) Failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &queue.OpError{Op: op, Path: h.Path, Err: err}
}
