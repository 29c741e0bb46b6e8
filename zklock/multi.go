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

// ContextLocker is a lock that [Multi] takes: a [Mutex], an RWMutex or a Reader of rwlock, or a Semaphore, and no
// other.
type ContextLocker interface {
	Path() string
	Acquire(ctx context.Context) (*queue.Lease, error)
	TryAcquire(ctx context.Context) (*queue.Lease, error)
}

var _ ContextLocker = (*Mutex)(nil)

// MultiLock is several locks that are taken together, all or none. [Mutex] says what the methods wait for, return and
// promise; here is what is different.
type MultiLock struct {
	_ misuse.NoCopy

	locks   []*share.Lock // in the order of their paths
	given   []int         // the index of each among the arguments of Multi
	inOrder bool          // they are not taken at once
	holds   share.Holds[multiHold]
}

func (m *MultiLock) made() *MultiLock {
	if m == nil || m.locks == nil {
		panic("zklock: MultiLock not made by Multi")
	}
	return m
}

func (m *MultiLock) called(ctx context.Context, method string) *MultiLock {
	m.made()
	misuse.Context(ctx, method)
	return m
}

// Multi returns a lock that consists of several locks of one manager, of any kinds that this module has.
//
// It takes them in the order of their paths. So callers that take some of the same locks through Multi cannot wait
// for each other in a circle, but one that takes them one by one, in another order, can.
//
// An owner ([queue.WithOwner]) that holds the MultiLock enters it again. An owner that holds one of the locks by
// itself would wait for its own Unlock: calls return [session.ErrInvalid] then, or [session.ErrLost] if it has lost
// that lock.
//
// Several free locks take as long as one: the MultiLock enters all queues in one flight. If anybody is in the way, it
// removes all of its nodes, and takes one lock after another, so that it never waits in one queue while it stands in
// a later one. It does so from the beginning if goroutines of this process share the place of one of the locks
// ([WithLocalHandover], [WithLazyRelease]), or if one is a semaphore in Curator's layout.
//
// Multi does no I/O. It returns an error that matches [session.ErrInvalid] if there is no lock, if one is nil or of
// another type, or if two have different managers or the same path.
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

// Lock waits until it holds all of the locks. It fails as [Mutex.Lock] does, and then keeps the place of none.
//
// If Lock loses one of the locks while it waits for another, it starts over. Once it has returned nil, the hold is
// lost as soon as any of the locks is lost. The others are kept until Unlock, as the work that they protect may still
// be going on.
func (m *MultiLock) Lock(ctx context.Context) error {
	return m.called(ctx, "zklock: MultiLock.Lock").holds.Lock(ctx, m.get)
}

// TryLock takes all of the locks if they are free. It looks at all of them first, and writes nothing if one is busy.
func (m *MultiLock) TryLock(ctx context.Context) (bool, error) {
	return m.called(ctx, "zklock: MultiLock.TryLock").holds.TryLock(ctx, m.get)
}

// Unlock gives up all of the locks, the last first, also if some are lost or cannot be given up, and joins the
// errors. It waits for all as long as for one, and not at all if all have [WithAsyncRelease].
func (m *MultiLock) Unlock() error { return m.made().holds.Unlock() }

// Do calls f while it holds all of the locks. The context of f ends when any of them is lost, or asked for.
// [MultiLeaseFrom] returns the leases from it.
func (m *MultiLock) Do(ctx context.Context, f func(context.Context) error) error {
	return m.called(ctx, "zklock: MultiLock.Do").holds.Do(ctx, m.get, f)
}

// TryDo is [MultiLock.Do] without waiting for a holder.
func (m *MultiLock) TryDo(ctx context.Context, f func(context.Context) error) (ran bool, err error) {
	return m.called(ctx, "zklock: MultiLock.TryDo").holds.TryDo(ctx, m.get, f)
}

// Held reports whether Lock, TryLock or Do of this MultiLock holds all of the locks.
func (m *MultiLock) Held() bool { return m.made().holds.Held() }

// Done returns a channel that is closed when the present hold ends, or if there is none.
func (m *MultiLock) Done() <-chan struct{} { return m.made().holds.Done() }

// Locker returns the locks as one [sync.Locker]. onLost may be nil.
func (m *MultiLock) Locker(onLost func(error)) sync.Locker {
	return m.made().holds.Locker(m.get, onLost)
}

// Acquire takes all of the locks and returns them as one handle. It ignores owners.
func (m *MultiLock) Acquire(ctx context.Context) (*MultiLease, error) {
	held, err := m.called(ctx, "zklock: MultiLock.Acquire").get(ctx, false)
	return held.MultiLease, err
}

// TryAcquire is Acquire without waiting for a holder.
func (m *MultiLock) TryAcquire(ctx context.Context) (*MultiLease, error) {
	held, err := m.called(ctx, "zklock: MultiLock.TryAcquire").get(ctx, true)
	return held.MultiLease, err
}
