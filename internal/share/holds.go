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

// Lease is what a hold has: a [queue.Lease], or several as one.
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

// Get gets a lease. With try it waits for nobody, and fails with [queue.ErrBusy].
type Get[L Lease] func(ctx context.Context, try bool) (L, error)

// Holds are the holds of one lock object, for concurrent use. The exported fields are set before the first use.
type Holds[L Lease] struct {
	Path    string // for messages
	Manager *session.Manager

	// Slot allows one hold at a time, until its Unlock, even if it is lost.
	Slot bool
	// Several says that a lease consists of several. A call that has some of them is interrupted when the hold in the
	// slot is lost, since other processes may want those.
	Several bool
	// Apart says that owners do not enter holds again.
	Apart bool
	// Async is WithAsyncRelease.
	Async bool
	// Refuse may be nil. It refuses an owner a hold, for what the owner holds besides.
	Refuse func(ctx context.Context, owner *queue.Owner) error

	mu   sync.Mutex
	all  []*Hold[L] // oldest first
	loss *loss      // the next one, if Several; nil: nobody waits for it
}

type loss struct {
	context.Context
	end context.CancelFunc
}

// Hold is one lease and the calls of its owner that share it.
type Hold[L Lease] struct {
	Lease L

	owner *queue.Owner
	calls [2]int32      // via Lock and via Do; guarded by Holds.mu
	ended chan struct{} // guarded by Holds.mu; nil: nobody waits
}

// Unlock gives back a call via Lock, and never one of a Do.
const (
	viaLock = iota
	viaDo
)

// Of returns the hold of an owner, lost or not.
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

// Any reports whether there is a hold, lost or not.
func (h *Holds[L]) Any() bool { return len(h.standing()) > 0 }

// Held reports whether there is a hold that is not lost.
func (h *Holds[L]) Held() bool {
	return slices.ContainsFunc(h.standing(), func(held *Hold[L]) bool { return held.Lease.Err() == nil })
}

// Done returns a channel that is closed when the latest hold ends, or if there is none.
func (h *Holds[L]) Done() <-chan struct{} {
	if all := h.standing(); len(all) > 0 {
		return all[len(all)-1].Lease.Done()
	}
	ended := make(chan struct{})
	close(ended)
	return ended
}

func (h *Holds[L]) standing() []*Hold[L] {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

// Lock enters the hold of ctx's owner again, or gets a lease.
func (h *Holds[L]) Lock(ctx context.Context, get Get[L]) error {
	_, err := h.take(ctx, false, viaLock, get)
	return err
}

// TryLock is Lock that waits for nobody. It returns false and nil if it is busy.
func (h *Holds[L]) TryLock(ctx context.Context, get Get[L]) (bool, error) {
	held, err := h.take(ctx, true, viaLock, get)
	return held != nil, err
}

// take returns a hold with one more call, or nil and nil if a try is busy.
//
// A lost hold keeps the slot until its Unlock, as its work may still be going on. Nobody may have a node in the queue
// for this object meanwhile: see Lock of zklock.Mutex.
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
	var behind *Hold[L] // in the slot when a lease came
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
			_ = lease.GiveUp(ctx) // the next try must not find the node
			return nil, h.Failed("acquire", queue.ErrBusy)
		}
		// Of several locks only one may be lost, and other processes want the rest now. Nobody waits for the removals.
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

// enterAgain returns nil and nil if the owner has no hold.
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
		return nil, nil // unlocked meanwhile, which is no loss
	case err != nil:
		return nil, h.Failed("acquire", err)
	}
	held.calls[by]++
	return held, nil
}

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

func (h *Holds[L]) lostInSlot() *Hold[L] {
	if !h.Slot {
		return nil
	}
	if all := h.standing(); len(all) > 0 && all[0].Lease.Err() != nil {
		return all[0]
	}
	return nil
}

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
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return &queue.WaitError{Err: ctx.Err(), Reason: "this process has lost the lock, and has not unlocked it yet"}
	case <-h.Manager.Done():
		return session.ErrClosed
	}
}

var errInterrupted = errors.New("interrupted") // of a Get, by the loss of the hold in the slot

// untilLoss returns a Get that fails with errInterrupted when the hold in the slot is lost.
func (h *Holds[L]) untilLoss(get Get[L]) Get[L] {
	return func(ctx context.Context, try bool) (lease L, err error) {
		h.mu.Lock()
		if h.loss == nil {
			ctx, end := context.WithCancel(context.Background())
			h.loss = &loss{ctx, end}
		}
		next := h.loss
		h.mu.Unlock()
		if h.lostInSlot() != nil { // perhaps before h.loss was there
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

func (h *Holds[L]) interrupt(ended *Hold[L]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.loss != nil && slices.Contains(h.all, ended) {
		h.loss.end()
		h.loss = nil
	}
}

// Failed adds the operation and the path.
func (h *Holds[L]) Failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &queue.OpError{Op: op, Path: h.Path, Err: err}
}
