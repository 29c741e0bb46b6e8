package zklock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Mutex is a mutual exclusion lock over all processes that use the same path. The
// algorithm is that of [queue], with one lease for everybody: Curator's
// InterProcessMutex, whose nodes it shares, and zk.Lock's of go-zookeeper, in one round
// trip to enter and none to take over.
//
// All methods may be called by any number of goroutines at once; each waits in the one
// queue of all processes.
type Mutex struct {
	q    *queue.Queue
	data []byte // nil: the default

	slot chan struct{} // holds a token while hold is set, or about to be

	mu   sync.Mutex
	hold *hold // who came in through Lock, until his last Unlock; nil for none
}

// hold is what one Lock, and those by the same owner within it, have until Unlock.
type hold struct {
	lease *queue.Lease
	owner *owner // nil: not re-entrant
	count int    // of Locks without Unlock; guarded by Mutex.mu
}

// mutex is the kind of lock: one at a time. It counts kazoo's nodes too.
var mutex = &queue.Kind{
	Name:     "mutex",
	Prefixes: []string{queue.PrefixLock, queue.PrefixKazooLock},
	Policy:   func(queue.Node) queue.Policy { return queue.Policy{} },
}

// unlockPatience is how long Unlock waits for the server to confirm.
const unlockPatience = time.Second

// New returns the mutex at an absolute path of ZooKeeper, a directory that is made when
// needed and goes when it is not. It does no I/O. A nil manager, a bad path or a bad
// option is an error that matches [session.ErrInvalid].
//
// Two Mutex values at one path exclude each other, in one process too.
func New(m *session.Manager, path string, opts ...Option) (*Mutex, error) {
	q, err := queue.New(m, path)
	if err != nil {
		return nil, fmt.Errorf("zklock: %w", err)
	}
	mx := &Mutex{q: q, slot: make(chan struct{}, 1)}
	if err := mx.applyAll(opts); err != nil {
		return nil, fmt.Errorf("zklock: %w", err)
	}
	return mx, nil
}

// Lock waits for its turn and takes the mutex. It returns nil when it holds it; when ctx
// ends before, an error that matches ctx.Err(), at once and with nothing left behind; or
// [session.ErrClosed] when the manager is closed. That ctx ends after it has returned
// nil changes nothing. A lost connection or session is not the caller's business: it
// goes on waiting, in a new session at the end of the queue.
//
// Other errors: [session.ErrLost] when the owner of ctx ([WithOwner]) holds the mutex
// but has lost it, [queue.ErrConflict], [queue.ErrSequence], [session.ErrTooManyNodes],
// and what the server refuses, such as zk.ErrNoAuth.
//
// If the mutex is lost before Unlock, others can come in; but not through this Mutex:
// its next Lock returns only after that Unlock.
func (m *Mutex) Lock(ctx context.Context) error {
	_, err := m.lock(ctx, m.q.Acquire, m.waitSlot)
	return err
}

// TryLock takes the mutex if nobody is in the way. It returns false and nil if somebody
// is; an error says that it could not tell. It leaves nothing behind unless it returns
// true. It waits for the servers, as ctx allows, but for no holder.
func (m *Mutex) TryLock(ctx context.Context) (bool, error) {
	_, err := m.lock(ctx, m.q.TryAcquire, m.trySlot)
	if errors.Is(err, queue.ErrBusy) {
		return false, nil
	}
	return err == nil, err
}

// acquire is Acquire or TryAcquire of the queue.
type acquire func(context.Context, queue.Request) (*queue.Lease, error)

// takeSlot waits for the slot, or does not. A lease that is lost meanwhile gives
// errLeaseLost.
type takeSlot func(context.Context, *queue.Lease) error

var errLeaseLost = errors.New("lease lost while another hold of this mutex stood")

func (m *Mutex) lock(ctx context.Context, get acquire, take takeSlot) (*hold, error) {
	own := ownerOf(ctx)
	for {
		if h, err := m.reenter(ctx, own); h != nil || err != nil {
			return h, err
		}
		lease, err := get(ctx, queue.Request{Kind: mutex, Data: m.data})
		if err != nil {
			return nil, err
		}
		if err = take(ctx, lease); err == nil {
			return m.occupy(lease, own), nil
		}
		giveUp(ctx, lease, err)
		if !errors.Is(err, errLeaseLost) {
			return nil, fmt.Errorf("lock %s: %w", m.q.Path(), err)
		}
	}
}

// reenter adds one to the hold of the owner, if he is the one who holds. Whether a lease
// is lost is asked without m.mu, as that may call hooks.
func (m *Mutex) reenter(ctx context.Context, own *owner) (*hold, error) {
	h := m.holdOf(own)
	if h == nil {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("lock %s: %w", m.q.Path(), err)
	}
	if err := h.lease.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hold != h { // unlocked meanwhile
		return nil, nil
	}
	h.count++
	return h, nil
}

// holdOf returns the hold, if it is this owner's.
func (m *Mutex) holdOf(own *owner) *hold {
	m.mu.Lock()
	defer m.mu.Unlock()
	if own == nil || m.hold == nil || m.hold.owner != own {
		return nil
	}
	return m.hold
}

func (m *Mutex) waitSlot(ctx context.Context, lease *queue.Lease) error {
	select {
	case m.slot <- struct{}{}:
		return m.keepSlot(lease)
	default:
	}
	select {
	case m.slot <- struct{}{}:
		return m.keepSlot(lease)
	case <-ctx.Done():
		return ctx.Err()
	case <-lease.Done():
		return errLeaseLost
	}
}

func (m *Mutex) trySlot(_ context.Context, lease *queue.Lease) error {
	select {
	case m.slot <- struct{}{}:
		return m.keepSlot(lease)
	default:
		return queue.ErrBusy
	}
}

// keepSlot gives the slot back if the lease was lost before it was taken.
func (m *Mutex) keepSlot(lease *queue.Lease) error {
	if lease.Err() == nil {
		return nil
	}
	<-m.slot
	return errLeaseLost
}

// giveUp releases a lease that nobody has seen. Its removal needs no help; but a try that
// was answered waits for it, as it does in the queue: it leaves nothing behind for the
// next one to find.
func giveUp(ctx context.Context, lease *queue.Lease, why error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !errors.Is(why, queue.ErrBusy) {
		cancel()
	}
	_ = lease.Release(ctx) // pending, or lost: both are fine
}

func (m *Mutex) occupy(lease *queue.Lease, own *owner) *hold {
	h := &hold{lease: lease, owner: own, count: 1}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hold = h
	return h
}

// Unlock gives back what one Lock or TryLock took. With n Locks by one owner, the n-th
// Unlock gives the mutex up.
//
// Giving it up is certain from the moment of the call. Unlock returns nil when the
// server has confirmed it, and [queue.ErrReleasePending] when that has not come after a
// second, as when disconnected; there is nothing left to do then either. It returns
// [ErrNotHeld], and frees nothing, when there is no Lock to give back, and
// [session.ErrLost] when the mutex was lost before: then others may have been in
// already. It never frees the lock of anyone else.
func (m *Mutex) Unlock() error {
	m.mu.Lock()
	h := m.hold
	m.mu.Unlock()
	if h == nil {
		return fmt.Errorf("unlock %s: %w", m.q.Path(), ErrNotHeld)
	}
	return m.unlock(h)
}

// unlock gives back one Lock of h, if h is still the hold.
func (m *Mutex) unlock(h *hold) error {
	left, ok := m.giveBack(h)
	switch {
	case !ok:
		return fmt.Errorf("unlock %s: %w", m.q.Path(), ErrNotHeld)
	case left > 0:
		return h.lease.Err()
	}
	ctx, cancel := context.WithTimeout(context.Background(), unlockPatience)
	defer cancel()
	lost := h.lease.Err()
	// The slot is free before the server has answered: whoever has the lease of the
	// next in the queue got it from the server.
	<-m.slot
	err := h.lease.Release(ctx)
	if lost != nil {
		return lost
	}
	return err
}

// giveBack takes one off the count of h, which stops being the hold at zero; it reports
// what is left, and whether h was the hold.
func (m *Mutex) giveBack(h *hold) (left int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hold != h {
		return 0, false
	}
	h.count--
	if h.count == 0 {
		m.hold = nil
	}
	return h.count, true
}

// Acquire takes the mutex and returns it as a handle, with its own Release, apart from
// Lock and Unlock. It waits and fails as Lock does, and knows no owners.
func (m *Mutex) Acquire(ctx context.Context) (*queue.Lease, error) {
	return m.q.Acquire(ctx, queue.Request{Kind: mutex, Data: m.data})
}

// Held reports whether somebody who came in through Lock, TryLock or Do of this Mutex
// holds it, at the time of the call and by the clock.
func (m *Mutex) Held() bool {
	m.mu.Lock()
	h := m.hold
	m.mu.Unlock()
	return h != nil && h.lease.Err() == nil
}

// Contenders returns who holds the mutex and who waits for it, in all processes and in
// order. It fails with ctx's error, [queue.ErrConflict], [session.ErrClosed] or what the
// server refuses.
func (m *Mutex) Contenders(ctx context.Context) ([]queue.Contender, error) {
	return m.q.Contenders(ctx, mutex)
}
