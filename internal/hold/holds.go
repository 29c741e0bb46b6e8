package hold

import (
	"context"
	"slices"
	"sync"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/session"
)

// Holds are the holds of one lock object. Its methods may be called by any number of goroutines
// at once.
type Holds[L Lease] struct {
	path    string           // of the lock, for messages
	manager *session.Manager // on which the lock depends; nil: it depends on none

	// Get begins to get a lease, and Try gets one or fails with [place.ErrBusy]. They are set before
	// the first call.
	Get Get[L]
	Try func(context.Context) (L, error)

	// Refuse, if not nil, returns an error if the owner of a context cannot have the lock. It is
	// called before a call waits or sends anything.
	Refuse func(context.Context) error

	// Async says that nobody waits for the server when a hold is given back.
	Async bool

	// apart says that an owner does not enter its hold again.
	apart bool

	// slot says that there is one hold at a time.
	slot bool

	// getting interrupts calls of Get when the hold in the slot is lost. Nil: nothing does.
	getting *interrupter

	mu  sync.Mutex
	all []*Hold[L] // oldest first
}

// One returns holds of which there is one at a time. The next begins only after the Unlock of
// the one before it, even if that was lost. m is the manager on which the lock depends.
func One[L Lease](path string, m *session.Manager) *Holds[L] {
	return &Holds[L]{path: path, manager: m, slot: true}
}

// Several is One for a lease that consists of several leases, taken one after another. A call of
// Get that has some of them and waits for the next is interrupted when the hold in the slot is
// lost, since other processes may want those that it has.
func Several[L Lease](path string, m *session.Manager) *Holds[L] {
	h := One[L](path, m)
	h.getting = newInterrupter()
	return h
}

// Many returns any number of holds at a time. m is the manager on which the lock depends.
func Many[L Lease](path string, m *session.Manager) *Holds[L] {
	return &Holds[L]{path: path, manager: m}
}

// Apart returns any number of holds at a time, without re-entrancy: every Lock gets a lease of
// its own.
func Apart[L Lease](path string) *Holds[L] { return &Holds[L]{path: path, apart: true} }

// Of returns the hold of an owner, nil if it has none.
func (h *Holds[L]) Of(owner *Owner) *Hold[L] {
	if owner == nil {
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
func (h *Holds[L]) Any() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all) > 0
}

// Held reports whether there is a hold that is not lost.
func (h *Holds[L]) Held() bool {
	return slices.ContainsFunc(h.standing(), func(held *Hold[L]) bool { return held.Lease.Err() == nil })
}

// Done returns a channel that is closed when the latest hold is unlocked or lost. It is closed
// already if there is no hold.
func (h *Holds[L]) Done() <-chan struct{} {
	all := h.standing()
	if len(all) == 0 {
		return Closed
	}
	return all[len(all)-1].Lease.Done()
}

// Closed is the Done of a lock that is not held.
var Closed = func() <-chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

// standing returns the holds that have not been given back, lost or not.
func (h *Holds[L]) standing() []*Hold[L] {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

// add makes a lease a hold. If there is one in the slot already, it returns that and adds
// nothing.
func (h *Holds[L]) add(lease L, r *request[L]) (held, inSlot *Hold[L]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.slot && len(h.all) > 0 {
		return nil, h.all[0]
	}
	held = &Hold[L]{Lease: lease, owner: r.owner}
	held.calls[r.via]++
	h.all = append(h.all, held)
	return held, nil
}

// remove takes one call off a hold, which ends with the last of them. It reports whether the
// hold has ended, and whether there was such a call.
func (h *Holds[L]) remove(held *Hold[L], by via) (ended, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if held.calls[by] == 0 {
		return false, false
	}
	held.calls[by]--
	if !held.over() {
		return false, true
	}
	h.all = slices.DeleteFunc(h.all, func(o *Hold[L]) bool { return o == held })
	held.ended.Tell()
	return true, true
}

// acquiring adds the operation and the path to an error of an acquisition.
func (h *Holds[L]) acquiring(err error) error { return place.Failed("acquire", h.path, err) }

// unlocking does the same for an error of Unlock or at the end of Do.
func (h *Holds[L]) unlocking(err error) error {
	if err == nil {
		return nil
	}
	return place.Failed("unlock", h.path, err)
}
