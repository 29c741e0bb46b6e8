package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// ContextLocker is a lock that [Multi] can take together with others: a [Mutex], and the
// locks of rwlock and semaphore.
type ContextLocker interface {
	// Path returns the lock's path, for messages.
	Path() string
	// FullName returns what tells the lock from all others, in the same words in every
	// process: see [session.Manager.FullName].
	FullName() string
	// Acquire waits for the lock and returns it as a handle.
	Acquire(ctx context.Context) (*queue.Lease, error)
	// TryAcquire is Acquire that waits for no holder: [queue.ErrBusy] says that somebody
	// is in the way.
	TryAcquire(ctx context.Context) (*queue.Lease, error)
}

var _ ContextLocker = (*Mutex)(nil)

// MultiLock is several locks that are taken all or none. Make one with [Multi]. All methods
// may be called by any number of goroutines at once. They panic if Multi has not made the
// MultiLock, and those that take a context panic if it is nil.
type MultiLock struct {
	_ misuse.NoCopy

	locks []ContextLocker // in the one order in which everybody takes them
	place []int           // of each of locks among those given to Multi
	holds *hold.Holds[*MultiLease]
}

// made returns m. It panics if m is nil or a zero value.
func (m *MultiLock) made() *MultiLock {
	if m == nil || m.holds == nil {
		panic("zklock: MultiLock not made by Multi")
	}
	return m
}

// Multi returns a lock over several, of any kinds and on any managers. They are taken in one
// order, in whatever order they are given: by their paths with the chroot, and where those
// are the same by the names of their ensembles ([session.Manager.FullName]). So callers that
// take some of the same locks through Multi cannot wait for each other in a circle. A caller
// that takes the locks one by one, in another order, can still be in one.
//
// Locks of one path on two ensembles have the same order everywhere only if all processes name
// the ensembles alike. Without [session.WithName] the name is the connect string's servers, and
// two processes that write them differently, as by address and by host name, can order the
// two locks differently, and then wait for each other for ever. Give every manager a name by
// WithName where Multi has locks on several ensembles.
//
// A MultiLock is re-entrant as a whole: an owner ([WithOwner]) that holds it enters it again. It
// takes its locks by their Acquire, which knows no owners: if the owner of ctx holds one of
// the locks by a Lock of its own, Lock of the MultiLock waits for that until ctx ends.
//
// Multi does no I/O. No locks, a nil one, one without a name (the zero Reader of rwlock), and one that
// is there twice, also by way of another object or another chroot, are errors that match [session.ErrInvalid]. Managers that name one
// ensemble differently are taken for managers of different ones.
func Multi(locks ...ContextLocker) (*MultiLock, error) {
	if len(locks) == 0 {
		return nil, fmt.Errorf("zklock: %w: Multi of no locks", session.ErrInvalid)
	}
	for i, l := range locks {
		if isNil(l) {
			return nil, fmt.Errorf("zklock: %w: Multi: lock %d is nil", session.ErrInvalid, i)
		}
		if l.FullName() == "" {
			return nil, fmt.Errorf("zklock: %w: Multi: lock %d has no name", session.ErrInvalid, i)
		}
	}
	m := &MultiLock{place: make([]int, len(locks))}
	for i := range m.place {
		m.place[i] = i
	}
	slices.SortFunc(m.place, func(i, j int) int { return compareNames(locks[i].FullName(), locks[j].FullName()) })
	var paths []string
	for i, place := range m.place {
		l := locks[place]
		if i > 0 && l.FullName() == m.locks[i-1].FullName() {
			return nil, fmt.Errorf("zklock: %w: Multi: %s is there twice", session.ErrInvalid, l.FullName())
		}
		m.locks, paths = append(m.locks, l), append(paths, l.Path())
	}
	m.holds = hold.Several[*MultiLease](strings.Join(paths, ", "), managersOf(m.locks)...)
	return m, nil
}

// managersOf returns the managers of locks, each once, of those locks that say theirs.
func managersOf(locks []ContextLocker) []*session.Manager {
	var all []*session.Manager
	for _, l := range locks {
		l, ok := l.(interface{ Manager() *session.Manager })
		if !ok {
			continue
		}
		if m := l.Manager(); m != nil && !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all
}

// isNil reports whether a lock is no lock, or a nil pointer to one, whose methods panic.
func isNil(l ContextLocker) bool {
	if l == nil {
		return true
	}
	v := reflect.ValueOf(l)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// compareNames orders by path first: processes that name their ensembles differently agree on
// that at least.
func compareNames(a, b string) int {
	serversA, pathA := cutServers(a)
	serversB, pathB := cutServers(b)
	return cmp.Or(strings.Compare(pathA, pathB), strings.Compare(serversA, serversB))
}

func cutServers(fullName string) (servers, path string) {
	i := max(0, strings.IndexByte(fullName, '/'))
	return fullName[:i], fullName[i:]
}

// Lock waits until it has all of the locks. ctx bounds the wait for all of them together.
// When it ends, Lock returns at once an error that matches ctx.Err(), and those that it had
// are given up, the last first, as with any other error: [session.ErrClosed] when a manager
// is closed, [session.ErrLost] when the owner of ctx ([WithOwner]) holds the MultiLock but
// has lost it, or what one of the locks returns. A server's refusal to remove a node is
// joined to it.
//
// A lock that is lost while the wait for another goes on is not the caller's business: Lock
// gives all of them up and starts over. Once Lock has returned nil, the hold is lost when
// any of the locks is; the others are kept until Unlock, as the work that they protect may
// still be going on. Until then other goroutines in Lock of this MultiLock have none of the
// locks, and no place in a queue.
func (m *MultiLock) Lock(ctx context.Context) error {
	m.made()
	misuse.Context(ctx, "zklock: MultiLock.Lock")
	_, err := m.holds.Lock(ctx, m.Acquire)
	return err
}

// TryLock takes all of the locks if nobody is in the way at any of them. It returns false
// and nil if somebody is; an error says that it could not tell. It leaves nothing behind
// unless it returns true. It waits for the servers, as ctx allows, but for no holder.
func (m *MultiLock) TryLock(ctx context.Context) (bool, error) {
	m.made()
	misuse.Context(ctx, "zklock: MultiLock.TryLock")
	return m.holds.TryLock(ctx, m.TryAcquire)
}

// Unlock gives back what one Lock or TryLock took, as [Mutex.Unlock] does: all of the locks,
// the last first, also when some are lost or cannot be given up. The errors are joined.
// [queue.ErrReleasePending] is among them only when there is nothing worse.
//
// Like that of a Mutex, Unlock cannot tell which goroutine calls it. Where several goroutines
// share the MultiLock use Do, which gives back its own hold and reports its own loss, or
// [MultiLock.Acquire].
func (m *MultiLock) Unlock() error { return m.made().holds.Unlock() }

// Do calls f while holding all of the locks, as [Mutex.Do] does: the context that f is given
// ends when any of them is lost. [MultiLeaseFrom] gives the leases from that context.
func (m *MultiLock) Do(ctx context.Context, f func(context.Context) error) error {
	m.made()
	misuse.Context(ctx, "zklock: MultiLock.Do")
	if f == nil {
		return fmt.Errorf("zklock: %w: Do of a nil function", session.ErrInvalid)
	}
	return m.holds.Do(ctx, m.Acquire, f)
}

// Held reports whether somebody who came in through Lock, TryLock or Do of this MultiLock
// holds all of the locks, at the time of the call and by the clock.
func (m *MultiLock) Held() bool { return m.made().holds.Held() }

// Done returns a channel that is closed when the hold that stands at the time of the call
// has ended: unlocked, or any of its locks lost. Where there is none, it is closed already.
// Held may know earlier.
func (m *MultiLock) Done() <-chan struct{} {
	m.made()
	if l, ok := m.holds.Newest(); ok {
		return l.Done()
	}
	return closed
}

var closed = func() <-chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

// Locker returns the locks as one [sync.Locker]: see [Mutex.Locker].
func (m *MultiLock) Locker(opts ...LockerOption) sync.Locker {
	m.made()
	return m.holds.Locker(m.Acquire, opts...)
}

// Acquire takes all of the locks and returns them as one handle, with its own Release, apart
// from Lock and Unlock. It waits and fails as Lock does, and knows no owners.
func (m *MultiLock) Acquire(ctx context.Context) (*MultiLease, error) {
	m.made()
	misuse.Context(ctx, "zklock: MultiLock.Acquire")
	return m.untilAll(ctx, ContextLocker.Acquire)
}

// TryAcquire is Acquire that waits for no holder: [queue.ErrBusy] says that somebody is in
// the way. It leaves nothing behind unless it returns a lease.
func (m *MultiLock) TryAcquire(ctx context.Context) (*MultiLease, error) {
	m.made()
	misuse.Context(ctx, "zklock: MultiLock.TryAcquire")
	return m.untilAll(ctx, ContextLocker.TryAcquire)
}

// take is how to get each of the locks.
type take func(ContextLocker, context.Context) (*queue.Lease, error)

// errLostEarlier says that a lock was lost while another was waited for.
var errLostEarlier = errors.New("a lock was lost before the others were there")

func (m *MultiLock) untilAll(ctx context.Context, take take) (*MultiLease, error) {
	var again rounds.Pace
	for {
		l, err := m.all(ctx, take)
		if !errors.Is(err, errLostEarlier) {
			return l, err
		}
		if err := again.Wait(ctx, nil); err != nil {
			return nil, fmt.Errorf("acquire %s: %w", m.locks[0].Path(), err)
		}
	}
}

// all takes one lock after another. The wait for one ends when an earlier one is lost.
func (m *MultiLock) all(ctx context.Context, take take) (*MultiLease, error) {
	l := newMultiLease(m.place)
	inside, cancel := l.context(ctx)
	defer cancel()
	settled := false
	defer func() {
		if !settled { // a hook has panicked, or ended the goroutine
			l.abandon(ctx)
		}
	}()
	for _, lock := range m.locks {
		one, err := take(lock, inside)
		if err == nil {
			l.add(one)
		}
		if l.Err() != nil {
			err = errLostEarlier
		}
		if err != nil {
			settled = true
			return nil, l.rollBack(ctx, err)
		}
	}
	settled = true
	return l, nil
}
