package hold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// ErrNotHeld is returned by Unlock when there is no Lock to give back.
var ErrNotHeld = errors.New("lock is not held")

// Lease is what a Lock has until its Unlock: a [queue.Lease], or several as one. After a
// loss Release returns an error that says so, and [queue.ErrReleasePending] never hides
// another error.
type Lease interface {
	Err() error
	Done() <-chan struct{}
	Context(parent context.Context) (context.Context, context.CancelFunc)
	Release(ctx context.Context) error
}

// Get waits for a lease, or tries to get one and returns [queue.ErrBusy].
type Get[L Lease] func(ctx context.Context) (L, error)

// Hold is what one Lock, and those by the same owner within it, have until Unlock.
type Hold[L Lease] struct {
	Lease L
	owner *Owner // nil: not re-entrant

	// Guarded by Holds.mu; the hold ends when both are zero.
	locks int // Locks without Unlock
	dos   int // Dos under way, each of which gives back its own

	ended chan struct{} // closed when the hold ends
}

// Holds are those of one lock object. Its methods may be called by any number of
// goroutines at once.
type Holds[L Lease] struct {
	path     string             // of the lock, for messages
	managers []*session.Manager // on which the lock depends, as far as they are known

	// Refuse, if not nil, says why the owner of a context cannot have the lock. It is asked
	// before anything waits or is sent.
	Refuse func(context.Context) error

	// apart says that no owner enters again what he holds.
	apart bool

	// slot says that one hold stands at a time.
	slot bool

	// calls interrupts calls of Get when the hold in the slot is lost; nil: nothing does.
	calls *calls

	mu  sync.Mutex
	all []*Hold[L] // in the order in which they came
}

// One returns what holds one lease at a time: until its holder has unlocked, also a
// lost one, nobody else comes in. managers are those on which the lock depends.
func One[L Lease](path string, managers ...*session.Manager) *Holds[L] {
	return &Holds[L]{path: path, managers: managers, slot: true}
}

// Several is One for a lease that consists of several, which are taken one after another. A
// call of Get that has some of them and waits for the next ends when the hold in the slot is
// lost: others may want those that it has.
func Several[L Lease](path string, managers ...*session.Manager) *Holds[L] {
	h := One[L](path, managers...)
	h.calls = newCalls()
	return h
}

// Many returns what holds any number of leases at a time. managers are those on which the lock
// depends.
func Many[L Lease](path string, managers ...*session.Manager) *Holds[L] {
	return &Holds[L]{path: path, managers: managers}
}

// Apart returns what holds any number of leases at a time, one for each Lock, whoever owns
// it: nothing is entered again.
func Apart[L Lease](path string) *Holds[L] { return &Holds[L]{path: path, apart: true} }

// UnlockPatience is how long Unlock waits for the server to confirm. A variable for tests,
// most of which want the confirmation also on a busy machine.
var UnlockPatience = time.Second

// Lock enters again what the owner of ctx holds, or gets a lease and waits for the slot. While
// a lost hold has the slot it gets no lease, and gives up the one that it has.
func (h *Holds[L]) Lock(ctx context.Context, get Get[L]) (*Hold[L], error) {
	return h.lock(ctx, get, false, oneLock)
}

// TryLock is Lock that does not wait for the slot, with a get that does not wait either:
// false and nil say that somebody is in the way.
func (h *Holds[L]) TryLock(ctx context.Context, get Get[L]) (bool, error) {
	_, err := h.lock(ctx, get, true, oneLock)
	if errors.Is(err, queue.ErrBusy) {
		return false, nil
	}
	return err == nil, err
}

// counter is that of a hold's counts which a call adds to, or takes off.
type counter[L Lease] func(*Hold[L]) *int

func oneLock[L Lease](held *Hold[L]) *int { return &held.locks }
func oneDo[L Lease](held *Hold[L]) *int   { return &held.dos }

func (h *Holds[L]) lock(ctx context.Context, get Get[L], try bool, count counter[L]) (*Hold[L], error) {
	var own *Owner
	if !h.apart {
		own = OwnerOf(ctx)
	}
	var again rounds.Pace
	for {
		if held, err := h.reenter(ctx, own, count); held != nil || err != nil {
			return held, err
		}
		if h.Refuse != nil {
			if err := h.Refuse(ctx); err != nil {
				return nil, err
			}
		}
		if lost := h.lostInSlot(); lost != nil {
			if err := h.outlast(ctx, lost, try); err != nil {
				return nil, fmt.Errorf("lock %s: %w", h.path, err)
			}
			continue
		}
		lease, err := h.contend(ctx, get, try)
		if errors.Is(err, errSlotLost) {
			continue
		}
		if err != nil {
			return nil, err
		}
		held, err := h.enterOrLeave(ctx, lease, own, try, count)
		if err == nil {
			return held, nil
		}
		giveUp(ctx, lease, err)
		switch {
		case errors.Is(err, errLeaseLost):
			err = again.Wait(ctx, nil)
		case errors.Is(err, errSlotLost): // it waits for the end of that hold
			err = nil
		}
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", h.path, err)
		}
	}
}

// Reenter adds one to the hold of an owner, if he has one; otherwise it returns nil and
// nil.
func (h *Holds[L]) Reenter(ctx context.Context, own *Owner) (*Hold[L], error) {
	return h.reenter(ctx, own, oneLock)
}

// reenter asks whether a lease is lost without h.mu, as that may call hooks.
func (h *Holds[L]) reenter(ctx context.Context, own *Owner, count counter[L]) (*Hold[L], error) {
	held := h.Of(own)
	if held == nil {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("lock %s: %w", h.path, err)
	}
	lost := held.Lease.Err()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case held.locks+held.dos == 0:
		return nil, nil // unlocked meanwhile, which is no loss
	case lost != nil:
		return nil, lost
	}
	*count(held)++
	return held, nil
}

// Of returns the hold of an owner, nil if he has none.
func (h *Holds[L]) Of(own *Owner) *Hold[L] {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, held := range h.all {
		if own != nil && held.owner == own {
			return held
		}
	}
	return nil
}

// giveUp releases a lease that nobody has seen. Its removal needs no help; but a try that
// was answered waits for it, as it does in the queue: it leaves nothing behind for the
// next one to find.
func giveUp(ctx context.Context, lease Lease, why error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !errors.Is(why, queue.ErrBusy) {
		cancel()
	}
	_ = lease.Release(ctx) // pending, or lost: both are fine
}

// add makes a lease a hold, unless another one is in the slot, which it returns then.
func (h *Holds[L]) add(lease L, own *Owner, count counter[L]) (held, inSlot *Hold[L]) {
	held = &Hold[L]{Lease: lease, owner: own, ended: make(chan struct{})}
	*count(held)++
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.slot && len(h.all) > 0 {
		return nil, h.all[0]
	}
	h.all = append(h.all, held)
	return held, nil
}

// Held reports whether there is a hold that is not lost.
func (h *Holds[L]) Held() bool {
	return slices.ContainsFunc(h.standing(), func(held *Hold[L]) bool { return held.Lease.Err() == nil })
}

// Newest returns the lease of the latest hold that has not been unlocked, lost or not, and
// whether there is one.
func (h *Holds[L]) Newest() (lease L, ok bool) {
	all := h.standing()
	if len(all) == 0 {
		return lease, false
	}
	return all[len(all)-1].Lease, true
}

func (h *Holds[L]) standing() []*Hold[L] {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

// Unlock gives back one Lock; see next. What a Do holds is for that alone to give back.
func (h *Holds[L]) Unlock() error {
	for {
		held := h.next()
		if held == nil {
			return fmt.Errorf("unlock %s: %w", h.path, ErrNotHeld)
		}
		if err := h.giveBack(held, oneLock); !errors.Is(err, ErrNotHeld) {
			return err
		}
		// Another Unlock was faster: there may be other holds.
	}
}

// next returns which hold an Unlock, which does not say whose, takes one Lock off: one that
// was lost, if there is one, so that it never frees what somebody relies on while there is
// something that nobody can; or else one without an owner, so that what an owner holds is
// known for as long as he may ask for more; or else the oldest.
func (h *Holds[L]) next() *Hold[L] {
	h.mu.Lock()
	all := slices.DeleteFunc(slices.Clone(h.all), func(held *Hold[L]) bool { return held.locks == 0 })
	h.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b *Hold[L]) int {
		switch {
		case (a.owner == nil) == (b.owner == nil):
			return 0
		case a.owner == nil:
			return -1
		}
		return 1
	})
	lost := func(held *Hold[L]) bool { return h.lastLook(held, oneLock) != nil }
	return all[max(0, slices.IndexFunc(all, lost))]
}

// Return gives back one Lock of a hold, if that still stands, as Unlock does.
func (h *Holds[L]) Return(held *Hold[L]) error { return h.giveBack(held, oneLock) }

func (h *Holds[L]) giveBack(held *Hold[L], count counter[L]) error {
	lost := h.lastLook(held, count) // as long as what we give back stands, nobody else has released it
	left, ok := h.takeOff(held, count)
	switch {
	case !ok:
		return fmt.Errorf("unlock %s: %w", h.path, ErrNotHeld)
	case left > 0:
		return lost
	}
	ctx, cancel := context.WithTimeout(context.Background(), UnlockPatience)
	defer cancel()
	return held.Lease.Release(ctx) // which tells a loss too
}

// lastLook asks whether the lease of a hold is lost of which one is about to be given back. If a
// hook that is told of the loss panics, or ends the goroutine, that one is given back here: nobody
// else would.
func (h *Holds[L]) lastLook(held *Hold[L], count counter[L]) (lost error) {
	looked := false
	defer func() {
		if looked {
			return
		}
		if left, ok := h.takeOff(held, count); ok && left == 0 {
			giveUp(context.Background(), held.Lease, nil)
		}
	}()
	lost = held.Lease.Err()
	looked = true
	return lost
}

// takeOff takes one off a count of a hold, which ends when nothing is left; it reports
// what is, and whether there was one to take. The slot is free before the lease is released:
// the goroutine that takes it next has got its own lease from the server.
func (h *Holds[L]) takeOff(held *Hold[L], count counter[L]) (left int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if *count(held) == 0 {
		return 0, false
	}
	*count(held)--
	left = held.locks + held.dos
	if left == 0 {
		h.all = slices.DeleteFunc(h.all, func(o *Hold[L]) bool { return o == held })
		close(held.ended)
	}
	return left, true
}

// Do calls f while holding, and always unlocks, also when f panics. It returns the error
// of f, with that of a loss; see endError. A release that is not confirmed is not reported.
func (h *Holds[L]) Do(ctx context.Context, get Get[L], f func(context.Context) error) (err error) {
	held, err := h.lock(ctx, get, false, oneDo)
	if err != nil {
		return err
	}
	inside, cancel := held.Lease.Context(ctx)
	defer cancel()
	defer func() {
		end := h.giveBack(held, oneDo)
		if !errors.Is(end, queue.ErrReleasePending) {
			err = withEnd(ctx, err, end, held.Lease.Err())
		}
	}()
	return f(inside)
}
