package zklock

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// ContextLocker is a lock that [Multi] can take together with others: a [Mutex], an RWMutex or a Reader of rwlock, or a
// Semaphore. Multi refuses all other types. A function that needs a lease of any lock takes an interface of its own, with
// the methods that it calls.
type ContextLocker interface {
	// Path returns the lock's path.
	Path() string
	// Acquire waits for the lock and returns it as a handle.
	Acquire(ctx context.Context) (*queue.Lease, error)
	// TryAcquire is Acquire without waiting for a holder. It returns [queue.ErrBusy] if the lock is busy.
	TryAcquire(ctx context.Context) (*queue.Lease, error)
}

var _ ContextLocker = (*Mutex)(nil)

// MultiLock is several locks that are taken together, all or none. [Multi] makes one.
//
// All methods may be called by any number of goroutines at once. They panic if Multi has not made the MultiLock. Those
// that take a context panic if it is nil.
type MultiLock struct {
	_ misuse.NoCopy

	locks   []member // in the order in which every process takes them
	given   []int    // the index of each of locks among those given to Multi
	inOrder bool     // they are never taken at once
	holds   share.Holds[multiHold]
}

// member is one of the locks.
type member struct {
	*share.Lock
	public ContextLocker
}

// made returns m. It panics if m is nil or a zero value.
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
// A MultiLock takes its locks in the order of their paths, whatever the order of the arguments. So callers that take some
// of the same locks through Multi cannot wait for each other in a circle. A caller that takes the locks one by one, in
// another order, can be part of such a circle.
//
// A MultiLock is re-entrant as a whole: an owner ([queue.WithOwner]) that holds it enters it again. An owner that holds
// one of the locks by itself, through the same Mutex or RWMutex, would wait for its own Unlock. So every call to take the
// MultiLock returns an error that matches [session.ErrInvalid] then, or [session.ErrLost] if the owner has lost that
// lock. A semaphore is not re-entrant: its owner takes another lease.
//
// Taking several free locks takes as long as taking one. The MultiLock first enters all queues in one flight, and holds
// all locks after one round trip if nobody is in the way. Otherwise it removes all of its nodes, waits until the servers
// have confirmed that, and then takes one lock after another, in order. So it never stands in a queue while it waits in
// an earlier one. If goroutines of this process share the place of one of the locks ([WithLocalHandover],
// [WithLazyRelease]), or one is a semaphore in Curator's layout, the MultiLock takes the locks in order from the
// beginning. A place that the process keeps is used again.
//
// Unlock waits for the servers unless all of the locks have [WithAsyncRelease].
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
	members := make([]member, len(locks))
	var manager *session.Manager
	async := true
	for i, l := range locks {
		if v := reflect.ValueOf(l); l == nil || v.Kind() == reflect.Pointer && v.IsNil() {
			return invalid("lock %d is nil", i)
		}
		one := share.LockOf(l)
		if one == nil {
			return invalid("lock %d, a %T, was not made by this module", i, l)
		}
		manager = cmp.Or(manager, one.Manager)
		if one.Manager != manager {
			return invalid("lock %d, %s, has another manager than lock 0, %s", i, l.Path(), locks[0].Path())
		}
		members[i], m.given = member{one, l}, append(m.given, i)
		m.inOrder, async = m.inOrder || one.Apart(), async && one.Async
	}
	slices.SortFunc(m.given, func(i, j int) int { return strings.Compare(locks[i].Path(), locks[j].Path()) })
	var paths []string
	for i, given := range m.given {
		path := locks[given].Path()
		if i > 0 && path == paths[i-1] {
			return invalid("%s is there twice", path)
		}
		m.locks, paths = append(m.locks, members[given]), append(paths, path)
	}
	m.holds = share.Holds[multiHold]{
		Path: strings.Join(paths, ", "), Manager: manager, Slot: true, Several: true, Async: async,
	}
	return m, nil
}

// Lock waits until it holds all of the locks. ctx bounds the wait for all of them together. If ctx ends before that, Lock
// returns at once an error that matches ctx.Err(). If the manager is closed, it returns [session.ErrClosed]; if the owner
// of ctx ([queue.WithOwner]) holds the MultiLock but has lost it, [session.ErrLost]; if the owner holds one of the locks
// by itself, [session.ErrInvalid]; if the session has no room for all of the nodes, [session.ErrTooManyNodes]; otherwise
// what one of the locks returns. A Lock that fails gives up the locks that it has taken, the last first, and keeps the
// place of none of them, also if they have [WithLazyRelease]. If a server refuses to remove the nodes of the first
// flight, Lock returns that error.
//
// If Lock loses one of the locks while it waits for another, it gives up all of them and starts over. Once it has
// returned nil, the hold is lost as soon as any of the locks is lost. The other locks are kept until Unlock, as the work
// that they protect may still be going on. Until that Unlock, other goroutines in Lock of this MultiLock have none of the
// locks and no place in a queue.
func (m *MultiLock) Lock(ctx context.Context) error {
	m.called(ctx, "zklock: MultiLock.Lock")
	return m.holds.Lock(ctx, m.get)
}

// TryLock takes all of the locks if they are free. It looks at all of them first, in one round trip. If one is busy,
// it returns false and nil, and has written nothing. Otherwise it enters the queues, and says busy if it may not go
// everywhere. It waits and fails as [Mutex.TryLock] does.
func (m *MultiLock) TryLock(ctx context.Context) (bool, error) {
	m.called(ctx, "zklock: MultiLock.TryLock")
	return m.holds.TryLock(ctx, m.get)
}

// Unlock gives back what one Lock or TryLock took, like [Mutex.Unlock]. It gives up all of the locks, the last first,
// also if some are lost or cannot be given up, and joins the errors. It waits for all of them together as long as for
// one.
func (m *MultiLock) Unlock() error { return m.made().holds.Unlock() }

// Do calls f while it holds all of the locks, like [Mutex.Do]. The context of f ends when any of the locks is lost, or
// another client asks for one of them. [MultiLeaseFrom] returns the leases from that context.
func (m *MultiLock) Do(ctx context.Context, f func(context.Context) error) error {
	m.called(ctx, "zklock: MultiLock.Do")
	return m.holds.Do(ctx, m.get, f)
}

// TryDo is [MultiLock.Do] without waiting for a holder, as [Mutex.TryDo] is.
func (m *MultiLock) TryDo(ctx context.Context, f func(context.Context) error) (ran bool, err error) {
	m.called(ctx, "zklock: MultiLock.TryDo")
	return m.holds.TryDo(ctx, m.get, f)
}

// Held reports whether Lock, TryLock or Do of this MultiLock holds all of the locks, in any goroutine.
func (m *MultiLock) Held() bool { return m.made().holds.Held() }

// Done returns a channel that is closed when the present hold through Lock, TryLock or Do of this MultiLock is
// unlocked, or any of its locks is lost, or if there is no hold.
func (m *MultiLock) Done() <-chan struct{} { return m.made().holds.Done() }

// Locker returns the locks as one [sync.Locker], as [Mutex.Locker] does. onLost is called once for a hold, when the first
// of its locks is lost. It may be nil.
func (m *MultiLock) Locker(onLost func(error)) sync.Locker {
	return m.made().holds.Locker(m.get, onLost)
}

// Acquire takes all of the locks and returns them as one handle with its own Release, apart from Lock and Unlock. It
// waits and fails as Lock does, but an owner that holds the MultiLock does not enter it again.
func (m *MultiLock) Acquire(ctx context.Context) (*MultiLease, error) {
	held, err := m.called(ctx, "zklock: MultiLock.Acquire").get(ctx, false)
	return held.MultiLease, err
}

// TryAcquire is Acquire without waiting for a holder. It returns [queue.ErrBusy] where TryLock returns false and nil.
func (m *MultiLock) TryAcquire(ctx context.Context) (*MultiLease, error) {
	held, err := m.called(ctx, "zklock: MultiLock.TryAcquire").get(ctx, true)
	return held.MultiLease, err
}
