package zklock

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// ErrNotHeld is returned by Unlock when there is no Lock or TryLock of the same object to give back. rwlock.ErrNotHeld
// and semaphore.ErrNotHeld are the same value.
var ErrNotHeld = share.ErrNotHeld

// Mutex is a lock that one holder has at a time, of all processes that use the same path.
type Mutex struct {
	_ misuse.NoCopy

	door

	lock share.Lock
}

type door = share.Door[*Mutex]

func (m *Mutex) made() *share.Lock {
	if m == nil || m.lock.Queue == nil {
		panic("zklock: Mutex not made by New")
	}
	return &m.lock
}

func (m *Mutex) called(ctx context.Context, method string) *share.Lock {
	l := m.made()
	misuse.Context(ctx, method)
	return l
}

var mutex = queue.Mutex()

// New returns the mutex at path, a directory of the lock's own. The first contender creates it, and the servers remove
// it a minute or two after the last one has gone. Names that come from users go through [EscapePath] first. Two Mutex
// values at one path exclude each other, also in one process. New does no I/O. It returns an error that matches
// [session.ErrInvalid] for a nil manager, a bad path or a bad option.
func New(m *session.Manager, path string, opts ...Option) (*Mutex, error) {
	mx, err := open(m, path, opts)
	if err != nil {
		return nil, fmt.Errorf("zklock: %w", err)
	}
	return mx, nil
}

func open(m *session.Manager, path string, opts []Option) (*Mutex, error) {
	var o share.Options
	if err := share.Apply(opts, &o, Option.apply); err != nil {
		return nil, err
	}
	q, err := queue.New(m, path)
	if err != nil {
		return nil, errors.Unwrap(err) // without the name of package queue
	}
	mx := &Mutex{}
	mx.lock.Open(q, mutex, &o)
	mx.lock.Slot = true
	if o.Handovers > 0 || o.Keep > 0 {
		mx.lock.Turns = share.NewTurns(q, mx.lock.Request(), o.Handovers, o.Keep)
	}
	mx.door = share.DoorTo[*Mutex](&mx.lock)
	return mx, nil
}

// Lock waits for its turn and takes the mutex. If ctx ends before that, Lock returns at once an error that matches
// ctx.Err(), and leaves nothing behind. Its text says who was ahead, as in
//
//	acquire /x: context deadline exceeded (held by web-3/4711, "request 42", in the queue for 12s)
//
// ctx bounds only the wait: the mutex stays held if ctx ends after Lock has returned nil. [queue.Queue.Acquire] lists
// the errors. [session.ErrLost] is one if the owner of ctx ([queue.WithOwner]) has lost the mutex.
//
// If the mutex is lost before Unlock, the next Lock of this Mutex returns only after that Unlock. Until then the
// goroutines in Lock have no place in the queue, so that a holder that hangs keeps out no other process.
func (m *Mutex) Lock(ctx context.Context) error {
	return m.called(ctx, "zklock: Mutex.Lock").Lock(ctx, m.lock.Acquire)
}

// TryLock takes the mutex if it is free. It returns false and nil if the mutex is busy: another contender holds it or
// is ahead in the queue. It waits for the servers, as long as ctx allows, but for no holder, except for a quarter of
// a second for a place of another process that may be kept ([WithLazyRelease]), which looks the same in use and unused.
//
// A busy try takes one round trip and writes nothing, and one that gets the mutex takes two. [queue.Queue.TryAcquire]
// says when the answer busy can be wrong. A process that takes the mutex again as soon as it has released it hardly
// ever leaves it to a TryLock: Lock with [queue.WithMaxWait] waits for its turn.
func (m *Mutex) TryLock(ctx context.Context) (bool, error) {
	return m.called(ctx, "zklock: Mutex.TryLock").TryLock(ctx, m.lock.Acquire)
}

// Unlock gives back what one Lock or TryLock took. Unlock never frees what a Do holds, or what was locked through
// another Mutex value.
//
// The release is certain from the moment of the call. Unlock waits until the servers have confirmed it, for a second
// at most, and for no connection: if there is none, if it breaks, or if the session is lost meanwhile, Unlock returns
// nil at once. Then the log and the Release hook of [session.Trace] tell how the release ends. A caller that has to
// know takes a lease ([Mutex.Acquire]). With [WithAsyncRelease] Unlock does not wait.
//
// The error matches [ErrNotHeld], and nothing is freed, if there is no Lock to give back, and [session.ErrLost] if
// the mutex was lost before. Otherwise it is what the servers refuse, such as zk.ErrNoAuth.
//
// Unlock cannot tell which goroutine calls it. If several share the Mutex, and one calls Unlock without a Lock, it
// gives back the hold of another. [Mutex.Do] and [Mutex.Acquire] give back their own.
func (m *Mutex) Unlock() error { return m.made().Unlock() }

// Acquire takes the mutex and returns it as a handle with its own Release. It waits and fails as Lock does, but
// ignores owners.
func (m *Mutex) Acquire(ctx context.Context) (*queue.Lease, error) {
	return m.called(ctx, "zklock: Mutex.Acquire").Acquire(ctx, false)
}

// TryAcquire is Acquire without waiting for a holder. It returns [queue.ErrBusy] where TryLock returns false and nil.
func (m *Mutex) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return m.called(ctx, "zklock: Mutex.TryAcquire").Acquire(ctx, true)
}

// Do calls f while it holds the mutex, and unlocks when f returns or panics, as [Mutex.Unlock] does. If it cannot
// lock, it returns what Lock returns and does not call f.
//
// The context of f ends when ctx ends, when the mutex is lost, when another client asks for it ([queue.ErrRevoked])
// and when the manager is closed; [context.Cause] tells which. [queue.LeaseFrom] returns the lease from it. If f
// locks the same Mutex without an owner ([queue.WithOwner]), it waits for itself until ctx ends.
//
// Do returns the error of f. If the mutex was lost before f returned, the error matches [session.ErrLost] even if f
// returned nil, and it also matches the error of f. But then it matches [context.Canceled] or
// [context.DeadlineExceeded] only if ctx itself has ended, since a loss is not the caller's cancellation.
func (m *Mutex) Do(ctx context.Context, f func(context.Context) error) error {
	return m.called(ctx, "zklock: Mutex.Do").Do(ctx, m.lock.Acquire, f)
}

// TryDo is [Mutex.Do] without waiting for a holder, as [Mutex.TryLock] is. It returns false and nil, and has not
// called f, if the mutex is busy.
func (m *Mutex) TryDo(ctx context.Context, f func(context.Context) error) (ran bool, err error) {
	return m.called(ctx, "zklock: Mutex.TryDo").TryDo(ctx, m.lock.Acquire, f)
}

// Held reports whether Lock, TryLock or Do of this Mutex holds the mutex. It looks at the clock.
func (m *Mutex) Held() bool { return m.made().Held() }

// Done returns a channel that is closed when the present hold of this Mutex is unlocked or lost, or if there is none.
// Held may know of a loss earlier.
func (m *Mutex) Done() <-chan struct{} { return m.made().Done() }

// Path returns the path that was given to [New].
func (m *Mutex) Path() string { return m.made().Path }

// Manager returns the session manager that was given to [New].
func (m *Mutex) Manager() *session.Manager { return m.made().Manager }

// Holder returns the contender that holds the mutex, or the zero value if it is free: see [queue.Queue.First].
func (m *Mutex) Holder(ctx context.Context) (queue.Contender, error) {
	return m.called(ctx, "zklock: Mutex.Holder").Queue.First(ctx, mutex)
}

// Contenders returns the holder and the waiters of all processes, in the order of the queue: see
// [queue.Queue.Contenders].
func (m *Mutex) Contenders(ctx context.Context) ([]queue.Contender, error) {
	return m.called(ctx, "zklock: Mutex.Contenders").Queue.Contenders(ctx, mutex)
}

// Locker returns the mutex as a [sync.Locker]. The Locker and the Mutex share one hold: Unlock of either gives back a
// Lock of the other. Unlock panics when the lock is not held, but not when it was lost.
//
// If the lock is lost between Lock and Unlock, onLost is called once, on a goroutine of its own, with an error that
// matches [session.ErrLost]. A program that cannot go on safely ends itself there. It is not called when the program
// closes the manager. It may be nil.
//
// Lock returns only when it holds the lock. It tries again after every error, such as [queue.ErrConflict] or
// zk.ErrNoAuth, which an operator can repair, and logs it, at most once a minute.
//
// When the program closes the manager, Lock can neither get the lock nor return an error, and a panic would turn each
// shutdown into a crash. So it ends its goroutine with [runtime.Goexit]. A deferred Unlock of this Locker is allowed.
// A main goroutine in Lock ends without ending the program. So close the manager after the goroutines that use the
// Locker have ended.
func (m *Mutex) Locker(onLost func(error)) sync.Locker {
	return m.made().Locker(m.lock.Acquire, onLost)
}
