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

// ErrNotHeld ("lock is not held") is returned by Unlock when there is no Lock or TryLock of the same object to give back.
// What a Do holds does not count. rwlock.ErrNotHeld and semaphore.ErrNotHeld are the same value.
var ErrNotHeld = share.ErrNotHeld

// Mutex is a lock that one holder has at a time, of all processes that use the same path. It is the queue of package
// [queue] with room for one, and shares its nodes with Curator's InterProcessMutex and go-zookeeper's zk.Lock. An
// acquisition takes one round trip to enter the queue, and none to take the lock over.
//
// Each call has a place of its own in the queue of all processes, except with [WithLocalHandover] and [WithLazyRelease].
type Mutex struct {
	_ misuse.NoCopy

	door // for Multi

	lock share.Lock
}

type door = share.Door[*Mutex]

// made returns the lock. It panics if New has not made m.
func (m *Mutex) made() *share.Lock {
	if m == nil || m.lock.Queue == nil {
		panic("zklock: Mutex not made by New")
	}
	return &m.lock
}

// called begins a call. It panics if New has not made m, or if there is no context.
func (m *Mutex) called(ctx context.Context, method string) *share.Lock {
	l := m.made()
	misuse.Context(ctx, method)
	return l
}

// mutex is the kind of lock. It counts kazoo's nodes too.
var mutex = queue.Mutex()

// New returns the mutex at path, an absolute path of ZooKeeper. The path is a directory of the lock's own, which
// contenders create when it is missing and which goes away when it is not used. Names that come from users go through
// [EscapePath] first. Two Mutex values at one path exclude each other, also in one process.
//
// New does no I/O. It returns an error that matches [session.ErrInvalid] for a nil manager, a bad path or a bad option.
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

// Lock waits for its turn and takes the mutex. It returns nil when it holds the mutex. If ctx ends before that, Lock
// returns at once an error that matches ctx.Err(), and leaves nothing behind. Its text says who was ahead, as in
//
//	acquire /x: context deadline exceeded (held by web-3/4711, "request 42", in the queue for 12s)
//
// Before the servers have told who that is, it names only a node. ctx bounds only the wait: the mutex stays held if ctx
// ends after Lock has returned nil.
//
// If the manager is closed, Lock returns [session.ErrClosed]. A lost connection or session is no error: Lock goes on
// waiting, after a lost session at the end of the queue. Other errors are [session.ErrLost] if the owner of ctx
// ([queue.WithOwner]) holds the mutex but has lost it, [queue.ErrConflict], [queue.ErrSequence],
// [session.ErrTooManyNodes], and what the server refuses, such as zk.ErrNoAuth.
//
// If the mutex is lost before Unlock, other processes can take it. The next Lock of this Mutex returns only after that
// Unlock. Until then the goroutines in Lock of this Mutex have no place in the queue, so that a holder that hangs keeps
// out no other process.
func (m *Mutex) Lock(ctx context.Context) error {
	return m.called(ctx, "zklock: Mutex.Lock").Lock(ctx, m.lock.Acquire)
}

// TryLock takes the mutex if it is free. It returns false and nil if the mutex is busy: another contender holds it or is
// ahead in the queue. It returns an error if it could not tell. TryLock waits for the servers, as long as ctx allows, but
// for no holder, except that it waits for a place that [WithLazyRelease] keeps: for a quarter of a second at most. It leaves
// nothing behind unless it returns true.
//
// TryLock looks first, as [queue.Queue.TryAcquire] does, which says when the answer busy can be wrong. A busy try takes one
// round trip and writes nothing, and one that gets the mutex takes two. So a process that takes the mutex again as soon as
// it has released it hardly ever leaves it to a TryLock. Lock with a short deadline ([queue.WithMaxWait]) waits for its
// turn.
func (m *Mutex) TryLock(ctx context.Context) (bool, error) {
	return m.called(ctx, "zklock: Mutex.TryLock").TryLock(ctx, m.lock.Acquire)
}

// Unlock gives back what one Lock or TryLock took. After n Locks by one owner, the n-th Unlock gives the mutex up. Unlock
// never frees what a Do holds, or what was locked through another Mutex value.
//
// The release is certain from the moment of the call. Unlock waits until the servers have confirmed it, so a process that
// hears of that, and asks for the mutex then, does not find this hold. It waits for a second at most, and for no
// connection: if there is none, if it breaks, or if the session is lost meanwhile, Unlock returns nil at once. The release
// goes on by itself, and the log and the Release hook of [session.Trace] tell how it ends. With [WithAsyncRelease] Unlock
// does not wait. A caller that has to know takes a lease ([Mutex.Acquire]), whose Release waits as its context allows.
//
// The error matches [ErrNotHeld], and nothing is freed, if there is no Lock to give back. It matches [session.ErrLost] if
// the mutex was lost before: others may have held it since. If the servers refuse to remove the node, it is their error,
// such as zk.ErrNoAuth.
//
// Unlock cannot tell which goroutine calls it. If several share the Mutex, and one calls Unlock without a Lock, it gives
// back the hold of another, and gets the report if that hold was lost. Where that can happen, use [Mutex.Do] or
// [Mutex.Acquire], which give back their own hold.
func (m *Mutex) Unlock() error { return m.made().Unlock() }

// Acquire takes the mutex and returns it as a handle with its own Release, apart from Lock and Unlock. It waits and fails
// as Lock does, but does not look at owners.
func (m *Mutex) Acquire(ctx context.Context) (*queue.Lease, error) {
	return m.called(ctx, "zklock: Mutex.Acquire").Acquire(ctx, false)
}

// TryAcquire is Acquire without waiting for a holder. It returns [queue.ErrBusy] where TryLock returns false and nil.
func (m *Mutex) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return m.called(ctx, "zklock: Mutex.TryAcquire").Acquire(ctx, true)
}

// Do calls f while it holds the mutex, and unlocks when f returns or panics, as [Mutex.Unlock] does. If it cannot lock,
// it returns what Lock returns and does not call f.
//
// The context of f ends when ctx ends, when the mutex is lost, when another client asks for it and when the manager is
// closed; [context.Cause] tells which. Its Err goes by the clock at the time of the call: see [queue.Lease.Context].
// [queue.LeaseFrom] returns the lease from it, for its fencing token and guard. It has the owner of ctx, if there is one:
// if f locks the same Mutex without an owner ([queue.WithOwner]), it waits for itself until ctx ends.
//
// Do returns the error of f. If the mutex was lost before f returned, the error matches [session.ErrLost] even if f
// returned nil, and it also matches the error of f. But then it matches [context.Canceled] or [context.DeadlineExceeded]
// only if ctx itself has ended, since a loss is not the caller's cancellation.
//
// If another client asks for the mutex ([Revoke]), the context of f ends with a cause that matches [queue.ErrRevoked].
// The mutex stays held until f returns. If f then returns an error, that of Do matches ErrRevoked. If the request came
// before the grant, Do returns ErrRevoked and does not call f. A function that must not be interrupted looks at the
// cause, or its caller uses Lock.
func (m *Mutex) Do(ctx context.Context, f func(context.Context) error) error {
	return m.called(ctx, "zklock: Mutex.Do").Do(ctx, m.lock.Acquire, f)
}

// TryDo is [Mutex.Do] without waiting for a holder, as [Mutex.TryLock] is. If it returns false, it has not called f: the
// mutex is busy if the error is nil, and otherwise TryDo could not tell.
func (m *Mutex) TryDo(ctx context.Context, f func(context.Context) error) (ran bool, err error) {
	return m.called(ctx, "zklock: Mutex.TryDo").TryDo(ctx, m.lock.Acquire, f)
}

// Held reports whether Lock, TryLock or Do of this Mutex holds the mutex, in any goroutine. It goes by the clock at the
// time of the call.
func (m *Mutex) Held() bool { return m.made().Held() }

// Done returns a channel that is closed when the present hold through Lock, TryLock or Do of this Mutex is unlocked or
// lost. It is closed already if there is no hold. Held may know of a loss earlier.
func (m *Mutex) Done() <-chan struct{} { return m.made().Done() }

// Path returns the path that was given to [New].
func (m *Mutex) Path() string { return m.made().Path }

// Manager returns the session manager that was given to [New].
func (m *Mutex) Manager() *session.Manager { return m.made().Manager }

// Holder returns who holds the mutex, of all processes, by one listing and one read. If nobody does, it returns the zero
// value. Since of the Contender is when the holder came to the queue, and HeldSince, for a holder of this process, when it
// got the mutex. Kept says that this process only keeps the place ([WithLazyRelease]). The answer was true at a moment after
// the call began: a program that follows the holder uses [queue.Queue.Observe]. Holder fails as Contenders does, but not
// with zk.ErrNoNode.
func (m *Mutex) Holder(ctx context.Context) (queue.Contender, error) {
	return m.called(ctx, "zklock: Mutex.Holder").Queue.First(ctx, mutex)
}

// Contenders returns the holder and the waiters of all processes, in the order of the queue. It fails with the error of
// ctx, [queue.ErrConflict], [session.ErrClosed], zk.ErrNoNode if the path does not exist (see [queue.Queue.Contenders]),
// or what the server refuses.
func (m *Mutex) Contenders(ctx context.Context) ([]queue.Contender, error) {
	return m.called(ctx, "zklock: Mutex.Contenders").Queue.Contenders(ctx, mutex)
}

// Locker returns the mutex as a [sync.Locker], for code that wants one. The Locker and the Mutex share one hold: Unlock
// of either gives back a Lock of the other. Unlock panics when the lock is not held, but not when it was lost.
//
// If the lock is lost between Lock and Unlock, onLost is called, once for that hold, with an error that matches
// [session.ErrLost]: as soon as the loss is known, on a goroutine of its own, so it may block, and may be called after an
// Unlock that comes at the same moment. A program that cannot go on safely ends itself in onLost. It is not called when
// the program closes the manager. It may be nil: then only [Mutex.Held] and [Mutex.Done] show the loss.
//
// Lock returns only when it holds the lock. It tries again after every error, such as [queue.ErrConflict] or
// zk.ErrNoAuth, which an operator can repair. It logs the error as a warning to the manager's logger
// ([session.WithLogger]): at once, and then once a minute, for all goroutines in Lock together.
//
// When the program closes the manager, Lock can neither get the lock nor return an error. To return would be to work
// without the lock, and a panic would turn each shutdown into a crash. So it logs a warning and ends the goroutine that
// called it, with [runtime.Goexit]. Deferred functions run, and a deferred Unlock of this Locker is allowed. A main
// goroutine in Lock ends without ending the program, which crashes when no goroutine is left, and a test in Lock fails.
// So close the manager after the goroutines that use the Locker have ended.
func (m *Mutex) Locker(onLost func(error)) sync.Locker {
	return m.made().Locker(m.lock.Acquire, onLost)
}
