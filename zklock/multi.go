package zklock

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
)

// ContextLocker is a lock that [Multi] can take together with others: a [Mutex], an RWMutex or a Reader of rwlock, or a
// Semaphore. Multi refuses all other types.
type ContextLocker interface {
	// Path returns the lock's path.
	Path() string
	// Acquire waits for the lock and returns it as a handle.
	Acquire(ctx context.Context) (*queue.Lease, error)
	// TryAcquire is Acquire without waiting for a holder. It returns [queue.ErrBusy] if the lock is busy.
	TryAcquire(ctx context.Context) (*queue.Lease, error)
}

var _ ContextLocker = (*Mutex)(nil)

// MultiLock is several locks that are taken together, all or none. [Multi] makes one. What a method waits for, returns and
// promises is said by the method of [Mutex]; the methods here say what is different.
type MultiLock struct {
	_ misuse.NoCopy

	locks   []*share.Lock // in the order in which every process takes them
	given   []int         // the index of each of locks among those given to Multi
	inOrder bool          // they are never taken at once
	holds   share.Holds[multiHold]
}

// made returns m. It panics if Multi has not made it.
func (m *MultiLock) made() *MultiLock {
	if m == nil || m.locks == nil {
		panic("zklock: MultiLock not made by Multi")
	}
	return m
}

// called begins a call. It panics if Multi has not made m, or if there is no context.
func (m *MultiLock) called(ctx context.Context, method string) *MultiLock {
	m.made()
	misuse.Context(ctx, method)
	return m
}

// Multi returns a lock that consists of several locks of one manager, of any kinds that this module has.
//
// It takes them in the order of their paths, whatever the order of the arguments. So callers that take some of the same
// locks through Multi cannot wait for each other in a circle, but one that takes them one by one, in another order, can.
//
// A MultiLock is re-entrant as a whole: an owner ([queue.WithOwner]) that holds it enters it again. An owner that holds
// one of the locks by itself, through the same Mutex or RWMutex, would wait for its own Unlock. So every call to take the
// MultiLock returns an error that matches [session.ErrInvalid] then, or [session.ErrLost] if the owner has lost that
// lock. A semaphore is not re-entrant: its owner takes another lease.
//
// Several free locks take as long as one: the MultiLock enters all queues in one flight, and holds all locks after one
// round trip if nobody is in the way. Otherwise it removes all of its nodes, waits until the servers have confirmed that,
// and takes one lock after another, in order. So it never stands in a queue while it waits in an earlier one. It goes in
// order from the beginning if goroutines of this process share the place of one of the locks ([WithLocalHandover],
// [WithLazyRelease]), which is used again if it is kept, or if one is a semaphore in Curator's layout.
//
// Multi does no I/O. It returns an error that matches [session.ErrInvalid] if there is no lock, if one is nil, the zero
// Reader of rwlock, or of a type that [ContextLocker] does not name, if they are of several managers, or if two have the
// same path. To take locks of several managers, or of your own kind, take one inside the Do of the other, in the same
// order everywhere.
func Multi(locks ...ContextLocker) (*MultiLock, error) {
	invalid := func(format string, args ...any) (*MultiLock, error) {
		return nil, fmt.Errorf("zklock: %w", misuse.Invalidf("Multi: "+format, args...))
	}
	if len(locks) == 0 {
		return invalid("no locks")
	}
	m := &MultiLock{inOrder: len(locks) == 1}
	all := make([]*share.Lock, len(locks))
	async := true
	for i, l := range locks {
		if v := reflect.ValueOf(l); l == nil || v.Kind() == reflect.Pointer && v.IsNil() {
			return invalid("lock %d is nil", i)
		}
		one := share.LockOf(l)
		if one == nil {
			return invalid("lock %d, a %T, was not made by this module", i, l)
		}
		all[i], m.given = one, append(m.given, i)
		if one.Manager != all[0].Manager {
			return invalid("lock %d, %s, has another manager than lock 0, %s", i, l.Path(), locks[0].Path())
		}
		m.inOrder, async = m.inOrder || one.Apart(), async && one.Async
	}
	slices.SortFunc(m.given, func(i, j int) int { return strings.Compare(all[i].Path, all[j].Path) })
	var paths []string
	for i, given := range m.given {
		one := all[given]
		if i > 0 && one.Path == paths[i-1] {
			return invalid("%s is there twice", one.Path)
		}
		m.locks, paths = append(m.locks, one), append(paths, one.Path)
	}
	m.holds = share.Holds[multiHold]{
		Path: strings.Join(paths, ", "), Manager: all[0].Manager, Slot: true, Several: true, Async: async,
	}
	return m, nil
}

// Lock waits until it holds all of the locks. ctx bounds the wait for all of them together. Lock fails as [Mutex.Lock] and
// the locks do, as [Multi] says for an owner, and if a server refuses to remove the nodes of the first flight. Then it has
// given up the locks that it had taken, the last first, and keeps the place of none, also with [WithLazyRelease].
//
// If Lock loses one of the locks while it waits for another, it gives up all of them and starts over. Once it has
// returned nil, the hold is lost as soon as any of the locks is lost. The other locks are kept until Unlock, as the work
// that they protect may still be going on. Until then, other goroutines in Lock of this MultiLock have no place in a queue.
func (m *MultiLock) Lock(ctx context.Context) error {
	return m.called(ctx, "zklock: MultiLock.Lock").holds.Lock(ctx, m.get)
}

// TryLock takes all of the locks if they are free. It looks at all of them first, in one round trip. If one is busy, it has
// written nothing. Otherwise it enters the queues, and says busy if it may not go everywhere.
func (m *MultiLock) TryLock(ctx context.Context) (bool, error) {
	return m.called(ctx, "zklock: MultiLock.TryLock").holds.TryLock(ctx, m.get)
}

// Unlock gives back what one Lock or TryLock took. It gives up all of the locks, the last first, also if some are lost or
// cannot be given up, and joins the errors. It waits for all of them together as long as for one, and does not wait if all
// have [WithAsyncRelease].
func (m *MultiLock) Unlock() error { return m.made().holds.Unlock() }

// Do calls f while it holds all of the locks. The context of f ends when any of the locks is lost, or another client asks
// for one of them. [MultiLeaseFrom] returns the leases from that context.
func (m *MultiLock) Do(ctx context.Context, f func(context.Context) error) error {
	return m.called(ctx, "zklock: MultiLock.Do").holds.Do(ctx, m.get, f)
}

// TryDo is [MultiLock.Do] without waiting for a holder.
func (m *MultiLock) TryDo(ctx context.Context, f func(context.Context) error) (ran bool, err error) {
	return m.called(ctx, "zklock: MultiLock.TryDo").holds.TryDo(ctx, m.get, f)
}

// Held reports whether Lock, TryLock or Do of this MultiLock holds all of the locks, in any goroutine.
func (m *MultiLock) Held() bool { return m.made().holds.Held() }

// Done returns a channel that is closed when the present hold through Lock, TryLock or Do of this MultiLock is
// unlocked, or any of its locks is lost, or if there is no hold.
func (m *MultiLock) Done() <-chan struct{} { return m.made().holds.Done() }

// Locker returns the locks as one [sync.Locker]. onLost, which may be nil, is called once for a hold, when the first of its
// locks is lost.
func (m *MultiLock) Locker(onLost func(error)) sync.Locker {
	return m.made().holds.Locker(m.get, onLost)
}

// Acquire takes all of the locks and returns them as one handle with its own Release, apart from Lock and Unlock. An owner
// that holds the MultiLock does not enter it again.
func (m *MultiLock) Acquire(ctx context.Context) (*MultiLease, error) {
	held, err := m.called(ctx, "zklock: MultiLock.Acquire").get(ctx, false)
	return held.MultiLease, err
}

// TryAcquire is Acquire without waiting for a holder. It returns [queue.ErrBusy] where TryLock returns false and nil.
func (m *MultiLock) TryAcquire(ctx context.Context) (*MultiLease, error) {
	held, err := m.called(ctx, "zklock: MultiLock.TryAcquire").get(ctx, true)
	return held.MultiLease, err
}
