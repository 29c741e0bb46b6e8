package rwlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// RWMutex is a lock that any number of readers or one writer hold at a time.
//
// It has the methods of [sync.RWMutex], with a context and with errors, and what every lock of this module has, for
// the write lock. [RWMutex.Reader] has the same for the read lock. The method of the same name of zklock.Mutex says
// what a method waits for, returns and promises; here is what is different.
//
// Calls on one RWMutex with one owner ([queue.WithOwner]) belong together:
//
//   - An owner that holds a lock gets the same one again at once, even if a writer waits. Each Lock needs its Unlock,
//     and each RLock its RUnlock.
//   - An owner that holds the write lock gets the read lock at once, and keeps it when it unlocks the write lock,
//     with no writer in between.
//
// Calls of one owner at the same time wait for each other like those of different owners.
type RWMutex struct {
	_ misuse.NoCopy

	door // of the write lock, for zklock.Multi

	write, read share.Lock
}

var (
	// ErrUpgrade is returned by Lock, TryLock and Do if the owner of the context holds only the read lock: the call
	// would wait for that. Unlock it first. After Lock has returned, read again what was read before.
	ErrUpgrade = errors.New("a read lock cannot become a write lock")

	// ErrNotHeld is zklock.ErrNotHeld.
	ErrNotHeld = share.ErrNotHeld
)

type door = share.Door[*RWMutex]

var (
	writer = queue.Writer()
	reader = queue.Reader()
)

func (rw *RWMutex) made() *RWMutex {
	if rw == nil || rw.write.Queue == nil {
		panic("rwlock: RWMutex not made by New")
	}
	return rw
}

func (rw *RWMutex) called(ctx context.Context, method string) *RWMutex {
	rw.made()
	misuse.Context(ctx, method)
	return rw
}

// New returns the lock at path, as New of package zklock returns a mutex. Two RWMutex values at one path are the same
// lock, but Unlock, Held and owners know only what was locked through the same value.
func New(m *session.Manager, path string, opts ...Option) (*RWMutex, error) {
	rw, err := open(m, path, opts)
	if err != nil {
		return nil, fmt.Errorf("rwlock: %w", err)
	}
	return rw, nil
}

func open(m *session.Manager, path string, opts []Option) (*RWMutex, error) {
	var o share.Options
	if err := share.Apply(opts, &o, Option.apply); err != nil {
		return nil, err
	}
	q, err := queue.New(m, path)
	if err != nil {
		return nil, errors.Unwrap(err) // without the name of package queue
	}
	rw := &RWMutex{}
	rw.write.Open(q, writer, &o)
	rw.read.Open(q, reader, &o)
	rw.write.Slot, rw.write.Refuse = true, rw.refuseReader
	rw.write.Other, rw.read.Other = &rw.read, &rw.write
	if o.Keep > 0 {
		rw.write.Turns = share.NewTurns(q, rw.write.Request(), 0, o.Keep)
		rw.read.Turns = share.NewReaders(q, rw.read.Request(), o.Keep)
	}
	rw.door = share.DoorTo[*RWMutex](&rw.write)
	return rw, nil
}

// Lock waits for its turn and takes the write lock. An owner that holds only the read lock gets [ErrUpgrade], or
// [session.ErrLost] if it has lost that.
func (rw *RWMutex) Lock(ctx context.Context) error {
	return rw.called(ctx, "rwlock: RWMutex.Lock").write.Lock(ctx, rw.write.Acquire)
}

// TryLock takes the write lock if it is free.
func (rw *RWMutex) TryLock(ctx context.Context) (bool, error) {
	return rw.called(ctx, "rwlock: RWMutex.TryLock").write.TryLock(ctx, rw.write.Acquire)
}

// Unlock gives back what one Lock or TryLock took. A read lock of the owner stays held.
func (rw *RWMutex) Unlock() error { return rw.made().write.Unlock() }

// RLock waits for the writers ahead of it in the queue, and takes the read lock. An owner that holds the read lock or
// the write lock waits for no other contender, and gets [session.ErrLost] if it has lost that lock.
func (rw *RWMutex) RLock(ctx context.Context) error {
	return rw.called(ctx, "rwlock: RWMutex.RLock").read.Lock(ctx, rw.readAsOwner)
}

// TryRLock takes the read lock if no writer holds the lock or is ahead in the queue.
func (rw *RWMutex) TryRLock(ctx context.Context) (bool, error) {
	return rw.called(ctx, "rwlock: RWMutex.TryRLock").read.TryLock(ctx, rw.readAsOwner)
}

// RUnlock gives back what one RLock or TryRLock took. It cannot tell which goroutine calls it. Of several read locks
// that were taken through this RWMutex, it gives back a lost one first, then one without an owner, then the oldest.
// So it may report the loss of another goroutine's hold. Where that matters, use [Reader.Do] or [Reader.Acquire].
func (rw *RWMutex) RUnlock() error { return rw.made().read.Unlock() }

// Acquire takes the write lock and returns it as a handle with its own Release. It ignores owners.
func (rw *RWMutex) Acquire(ctx context.Context) (*queue.Lease, error) {
	return rw.called(ctx, "rwlock: RWMutex.Acquire").write.Acquire(ctx, false)
}

// TryAcquire is Acquire without waiting for a holder.
func (rw *RWMutex) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return rw.called(ctx, "rwlock: RWMutex.TryAcquire").write.Acquire(ctx, true)
}

// Do calls f while it holds the write lock, as Do of zklock.Mutex does.
func (rw *RWMutex) Do(ctx context.Context, f func(context.Context) error) error {
	return rw.called(ctx, "rwlock: RWMutex.Do").write.Do(ctx, rw.write.Acquire, f)
}

// TryDo is [RWMutex.Do] without waiting for a holder.
func (rw *RWMutex) TryDo(ctx context.Context, f func(context.Context) error) (ran bool, err error) {
	return rw.called(ctx, "rwlock: RWMutex.TryDo").write.TryDo(ctx, rw.write.Acquire, f)
}

// Held reports whether Lock, TryLock or Do of this RWMutex holds the write lock.
func (rw *RWMutex) Held() bool { return rw.made().write.Held() }

// Done returns a channel that is closed when the present hold of the write lock ends, or if there is none.
func (rw *RWMutex) Done() <-chan struct{} { return rw.made().write.Done() }

// Locker returns the write lock as a [sync.Locker]. onLost, which may be nil, is called when the lock is lost.
func (rw *RWMutex) Locker(onLost func(error)) sync.Locker {
	return rw.made().write.Locker(rw.write.Acquire, onLost)
}

// RLocker returns the read lock as a [sync.Locker]. onLost is called once for each read lock that is lost.
func (rw *RWMutex) RLocker(onLost func(error)) sync.Locker {
	return rw.made().read.Locker(rw.read.Acquire, onLost)
}

// Path returns the path that was given to [New].
func (rw *RWMutex) Path() string { return rw.made().write.Path }

// Manager returns the session manager that was given to [New].
func (rw *RWMutex) Manager() *session.Manager { return rw.made().write.Manager }

// Contenders returns the holders and the waiters of all processes, in the order of the queue.
func (rw *RWMutex) Contenders(ctx context.Context) ([]queue.Contender, error) {
	return rw.called(ctx, "rwlock: RWMutex.Contenders").write.Queue.Contenders(ctx, writer)
}

func (rw *RWMutex) refuseReader(ctx context.Context, owner *queue.Owner) error {
	read := rw.read.Of(owner)
	if read == nil || rw.write.Of(owner) != nil {
		return nil
	}
	err := cmp.Or(ctx.Err(), read.Lease.Err()) // a loss matters more: what the owner has read may have changed
	if err == nil || errors.Is(err, queue.ErrReleased) {
		err = ErrUpgrade
	}
	return rw.write.Failed("acquire", err)
}

// readAsOwner gets the read lock. If the owner holds the write lock, it gets a place beside that, on which it does
// not depend afterwards.
func (rw *RWMutex) readAsOwner(ctx context.Context, try bool) (*queue.Lease, error) {
	owner := queue.OwnerOf(ctx)
	for {
		write := rw.write.Of(owner)
		if write == nil {
			return rw.read.Acquire(ctx, try)
		}
		l, err := rw.readBeside(ctx, write.Lease)
		if err == nil || rw.write.Of(owner) == write {
			return l, err
		}
		// The owner has unlocked the write lock meanwhile, so the read lock has to wait in the queue.
	}
}

func (rw *RWMutex) readBeside(ctx context.Context, write *queue.Lease) (*queue.Lease, error) {
	r := rw.read.Request()
	ctx, end, err := rw.read.Queue.StartAcquiring(ctx, &r, false)
	if err != nil {
		return nil, err
	}
	t, effort, err := write.Turn().Beside(ctx, write, r)
	if err != nil {
		return end(nil, effort, err)
	}
	return end(t.Lease(ctx, nil), effort, nil)
}
