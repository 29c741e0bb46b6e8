package zklock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/maxwait"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// ContextLocker is a lock that [Multi] can take together with others: a [Mutex], an RWMutex or a Reader of rwlock, or a
// Semaphore. Multi refuses all other types. A function that needs a lease of any lock takes an interface of its own,
// with the methods that it calls.
type ContextLocker interface {
	// Path returns the lock's path.
	Path() string
	// Acquire waits for the lock and returns it as a handle.
	Acquire(ctx context.Context) (*queue.Lease, error)
	// TryAcquire is Acquire without waiting for a holder. It returns [queue.ErrBusy] if the lock
	// is busy.
	TryAcquire(ctx context.Context) (*queue.Lease, error)
}

var _ ContextLocker = (*Mutex)(nil)

// MultiLock is several locks that are taken together, all or none. [Multi] makes one.
//
// All methods may be called by any number of goroutines at once. They panic if Multi has not made
// the MultiLock. Those that take a context panic if it is nil.
type MultiLock struct {
	_ misuse.NoCopy

	locks []*hold.Lock // in the order in which every process takes them
	given []int        // the index of each of locks among those given to Multi
	paths string       // for messages
	holds *hold.Holds[multiHold]
}

// made returns m. It panics if m is nil or a zero value.
func (m *MultiLock) made() *MultiLock {
	if m == nil || m.holds == nil {
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
// MultiLock returns an error that matches [session.ErrInvalid] then, or [session.ErrLost] if the owner has lost
// that lock. A semaphore is not re-entrant: its owner takes another lease.
//
// Taking several free locks costs little more than one. The nodes of all locks are made by one transaction, and all
// directories are listed behind it: one round trip, if nobody is in the way. One more transaction gives all of them
// back. If one of the locks is busy, the MultiLock keeps the locks before that one and its place in that queue, gives
// up the nodes behind it, and waits once the servers have confirmed that. From there on it takes the locks one after
// another. So it never stands in a queue while it waits in an earlier one.
//
// Unlock waits for the servers unless all of the locks have [WithAsyncRelease].
//
// Some locks are taken by themselves, at their place in the order: a semaphore in Curator's layout, and a lock whose
// place goroutines of this process share ([WithLocalHandover], [WithLazyRelease]) if it is in use or kept, or is a read
// lock. The MultiLock joins the queue of these. Neighbours between such locks share a transaction of their own. At most
// 64 locks, with 64 kB of data, share one.
//
// The tokens of locks that were taken by one transaction are equal. That is no harm, as a token is compared
// only with other tokens of the same lock.
//
// Multi does no I/O. It returns an error that matches [session.ErrInvalid] if there is no lock, if one is nil, the zero
// Reader of rwlock, or of a type that [ContextLocker] does not name, if they are of several managers, or if two have
// the same path. To take locks of several managers, or of your own kind, take one inside the Do of the other, in the
// same order everywhere.
func Multi(locks ...ContextLocker) (*MultiLock, error) {
	all, err := jointly(locks)
	if err != nil {
		return nil, fmt.Errorf("zklock: %w: Multi: %w", session.ErrInvalid, err)
	}
	m := &MultiLock{given: make([]int, len(locks))}
	for i := range m.given {
		m.given[i] = i
	}
	slices.SortFunc(m.given, func(i, j int) int { return strings.Compare(locks[i].Path(), locks[j].Path()) })
	var paths []string
	for _, given := range m.given {
		path := locks[given].Path()
		if len(paths) > 0 && path == paths[len(paths)-1] {
			return nil, fmt.Errorf("zklock: %w: Multi: %s is there twice", session.ErrInvalid, path)
		}
		m.locks, paths = append(m.locks, all[given]), append(paths, path)
	}
	m.paths = strings.Join(paths, ", ")
	m.holds = hold.Several[multiHold](m.paths, (*session.Manager)(all[0].Queue.Manager()))
	m.holds.Get, m.holds.Try = hold.InOneStep(m.get), m.try
	m.holds.Async = !slices.ContainsFunc(m.locks, func(l *hold.Lock) bool { return !l.Async })
	return m, nil
}

// jointly returns what is behind the locks, or why they cannot be taken together.
func jointly(locks []ContextLocker) ([]*hold.Lock, error) {
	if len(locks) == 0 {
		return nil, errors.New("no locks")
	}
	var all []*hold.Lock
	for i, l := range locks {
		if isNil(l) {
			return nil, fmt.Errorf("lock %d is nil", i)
		}
		one := hold.LockOf(l)
		if one == nil {
			return nil, fmt.Errorf("lock %d, a %T, was not made by this module", i, l)
		}
		if all = append(all, one); one.Queue.Manager() != all[0].Queue.Manager() {
			return nil, fmt.Errorf("lock %d, %s, has another manager than lock 0, %s", i, l.Path(), locks[0].Path())
		}
	}
	return all, nil
}

// isNil reports whether a lock is nil, or a nil pointer, whose methods panic.
func isNil(l ContextLocker) bool {
	if l == nil {
		return true
	}
	v := reflect.ValueOf(l)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Lock waits until it holds all of the locks. ctx bounds the wait for all of them together. If ctx ends before that,
// Lock returns at once an error that matches ctx.Err(). If the manager is closed, it returns [session.ErrClosed]; if
// the owner of ctx ([queue.WithOwner]) holds the MultiLock but has lost it, [session.ErrLost]; if the owner holds one
// of the locks by itself, [session.ErrInvalid]; otherwise what one of the locks returns. A Lock that fails gives up the
// locks that it has taken, the last first. It keeps the place of none of them, also if they have [WithLazyRelease]. If
// a server refuses to remove a node, that error is joined. The session must have room for all of the nodes
// ([session.WithMaxNodes], [session.WithMaxNodeBytes]), which Lock reserves at once and keeps until it returns.
// Otherwise Lock returns [session.ErrTooManyNodes] and asks for none.
//
// If Lock loses one of the locks while it waits for another, it gives up all of them and starts
// over. Once it has returned nil, the hold is lost as soon as any of the locks is lost. The other
// locks are kept until Unlock, as the work that they protect may still be going on. Until that
// Unlock, other goroutines in Lock of this MultiLock have none of the locks and no place in a
// queue.
func (m *MultiLock) Lock(ctx context.Context) error {
	return m.called(ctx, "zklock: MultiLock.Lock").holds.Lock(ctx)
}

// TryLock takes all of the locks if they are free. It looks at all of them first, in one round trip. If one is busy, it
// returns false and nil, and has written nothing. Otherwise it enters the queues, and says busy if it may not go
// everywhere. It returns an error if it could not tell. TryLock waits for the servers, as long as ctx allows, but for
// no holder. For a place that nobody uses it waits as [Mutex.TryLock] does. It leaves nothing behind unless it returns
// true.
func (m *MultiLock) TryLock(ctx context.Context) (bool, error) {
	return m.called(ctx, "zklock: MultiLock.TryLock").holds.TryLock(ctx)
}

// Unlock gives back what one Lock or TryLock took, like [Mutex.Unlock]. It gives up all of the locks, the last first,
// also if some are lost or cannot be given up, and joins the errors. It waits for all of them together as long as for
// one.
//
// Unlock cannot tell which goroutine calls it. Where several goroutines share the MultiLock, use
// [MultiLock.Do] or [MultiLock.Acquire]: they give back their own hold and report its loss.
func (m *MultiLock) Unlock() error { return m.made().holds.Unlock() }

// Do calls f while it holds all of the locks, like [Mutex.Do]. The context of f ends when any of the locks is lost, or
// another client asks for one of them. [MultiLeaseFrom] returns the leases from that context.
func (m *MultiLock) Do(ctx context.Context, f func(context.Context) error) error {
	m.called(ctx, "zklock: MultiLock.Do")
	if f == nil {
		return fmt.Errorf("zklock: %w: Do of a nil function", session.ErrInvalid)
	}
	return m.holds.Do(ctx, f)
}

// TryDo is [MultiLock.Do] without waiting for a holder, as [Mutex.TryDo] is.
func (m *MultiLock) TryDo(ctx context.Context, f func(context.Context) error) (ran bool, err error) {
	m.called(ctx, "zklock: MultiLock.TryDo")
	if f == nil {
		return false, fmt.Errorf("zklock: %w: TryDo of a nil function", session.ErrInvalid)
	}
	return m.holds.TryDo(ctx, f)
}

// Held reports whether Lock, TryLock or Do of this MultiLock holds all of the locks, in any
// goroutine. It goes by the clock at the time of the call.
func (m *MultiLock) Held() bool { return m.made().holds.Held() }

// Done returns a channel that is closed when the present hold through Lock, TryLock or Do of this
// MultiLock is unlocked, or any of its locks is lost. It is closed already if there is no hold.
// Held may know of a loss earlier.
func (m *MultiLock) Done() <-chan struct{} { return m.made().holds.Done() }

// Locker returns the locks as one [sync.Locker], as [Mutex.Locker] does. onLost is called once for a hold, when the first
// of its locks is lost. It may be nil.
func (m *MultiLock) Locker(onLost func(error)) sync.Locker { return m.made().holds.Locker(onLost) }

// Acquire takes all of the locks and returns them as one handle with its own Release, apart from
// Lock and Unlock. It waits and fails as Lock does, but an owner that holds the MultiLock does not enter it again.
func (m *MultiLock) Acquire(ctx context.Context) (*MultiLease, error) {
	return m.called(ctx, "zklock: MultiLock.Acquire").untilAll(ctx, false)
}

// TryAcquire is Acquire without waiting for a holder. It returns [queue.ErrBusy] where TryLock
// returns false and nil. It leaves nothing behind unless it returns a lease.
func (m *MultiLock) TryAcquire(ctx context.Context) (*MultiLease, error) {
	return m.called(ctx, "zklock: MultiLock.TryAcquire").untilAll(ctx, true)
}

// get is Acquire as holds need it.
func (m *MultiLock) get(ctx context.Context) (multiHold, error) {
	l, err := m.untilAll(ctx, false)
	return multiHold{l}, err
}

// try is TryAcquire as holds need it.
func (m *MultiLock) try(ctx context.Context) (multiHold, error) {
	l, err := m.untilAll(ctx, true)
	return multiHold{l}, err
}

// errLostEarlier says that a lock was lost during the wait for another.
var errLostEarlier = errors.New("a lock was lost before the others were taken")

// untilAll starts over when a lock is lost before all are taken.
func (m *MultiLock) untilAll(ctx context.Context, try bool) (*MultiLease, error) {
	var again rounds.Pace
	if err := m.refuseOwner(ctx); err != nil {
		return nil, place.Failed("acquire", m.paths, err)
	}
	ctx, end := maxwait.Begin(ctx)
	for {
		l, err := m.all(ctx, try)
		if !errors.Is(err, errLostEarlier) {
			return l, end(err)
		}
		if err := again.Wait(ctx, nil); err != nil {
			return nil, end(place.Failed("acquire", m.paths, err))
		}
	}
}

// refuseOwner returns an error if the owner of ctx holds one of the locks by itself, and would wait for its own Unlock.
func (m *MultiLock) refuseOwner(ctx context.Context) error {
	owner := hold.OwnerOf(ctx)
	for _, l := range m.locks {
		held := l.HeldBy(owner)
		if held == nil {
			continue
		}
		if err := held.Err(); err != nil && !errors.Is(err, queue.ErrReleased) {
			return err // the owner has to know this first
		}
		return fmt.Errorf("%w: the owner of the context holds %s already", session.ErrInvalid, l.Queue.Path())
	}
	return nil
}

// all takes the locks in order. The wait for one ends when an earlier one is lost.
func (m *MultiLock) all(ctx context.Context, try bool) (*MultiLease, error) {
	l := newMultiLease(m.given, m.paths)
	inside, cancel := l.context(ctx)
	defer cancel()
	inside, end := hold.InAdvance(inside, m.locks)
	defer end()
	t := &taking{locks: m.locks, try: try}
	for i := range m.locks {
		one, err := t.next(inside, i)
		if err == nil {
			l.add(one)
		}
		if l.Err() != nil {
			err = errLostEarlier
		}
		if err != nil {
			end()
			return nil, l.rollBack(ctx, err, t)
		}
	}
	return l, nil
}
