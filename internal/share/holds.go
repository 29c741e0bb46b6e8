package share

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// ErrNotHeld is returned by Unlock when there is no Lock to give back.
var ErrNotHeld = errors.New("lock is not held")

// UnlockPatience is how long an Unlock waits for the servers' answer. It is a variable for tests, most of which want the answer
// also on a busy machine.
var UnlockPatience = time.Second

// Lease is what a hold has until its end: a [queue.Lease], or several as one. The methods are those of queue.Lease.
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

// Holds are the holds of one lock object, by Lock, TryLock, Do and TryDo. The exported fields are set before the first use.
// All methods may be called by several goroutines at once.
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

	mu      sync.Mutex
	all     []*hold[L]         // oldest first
	loss    context.Context    // ends with the next loss of a hold, if Several; nil: nobody has asked
	endLoss context.CancelFunc // of loss
}

// hold is one lease and the calls that share it: the Lock or Do that got it, and those by which the same owner entered it
// again. It ends when each of them has been given back.
type hold[L Lease] struct {
	lease L
	owner *queue.Owner  // nil: nobody enters it again
	calls [2]int        // not yet given back, by via; guarded by Holds.mu
	ended chan struct{} // closed when it has ended; guarded by Holds.mu; nil: nobody waits
}

// via is the method by which a call entered a hold. Unlock gives back a Lock, and never a Do, which gives back itself.
type via int

const (
	viaLock via = iota
	viaDo
)

// Of returns the lease that an owner holds, lost or not. It returns false if the owner holds none, or is nil.
func (h *Holds[L]) Of(owner *queue.Owner) (lease L, ok bool) {
	if held := h.of(owner); held != nil {
		return held.lease, true
	}
	return lease, false
}

func (h *Holds[L]) of(owner *queue.Owner) *hold[L] {
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
	return slices.ContainsFunc(h.standing(), func(held *hold[L]) bool { return held.lease.Err() == nil })
}

// Done returns a channel that is closed when the latest hold is unlocked or lost. It is closed already if there is no hold.
func (h *Holds[L]) Done() <-chan struct{} {
	if all := h.standing(); len(all) > 0 {
		return all[len(all)-1].lease.Done()
	}
	ended := make(chan struct{})
	close(ended)
	return ended
}

// standing returns the holds that have not been given back, lost or not.
func (h *Holds[L]) standing() []*hold[L] {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

// add makes a lease a hold. If there is one in the slot already, it returns that and adds nothing.
func (h *Holds[L]) add(lease L, owner *queue.Owner, by via) (held, inSlot *hold[L]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Slot && len(h.all) > 0 {
		return nil, h.all[0]
	}
	held = &hold[L]{lease: lease, owner: owner}
	held.calls[by]++
	h.all = append(h.all, held)
	return held, nil
}

// failed adds the operation and the path to an error, if there is one.
func (h *Holds[L]) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &queue.OpError{Op: op, Path: h.Path, Err: err}
}
