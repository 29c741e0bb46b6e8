package rwlock

import (
	"context"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Reader is the read lock of an [RWMutex], with the method names of other locks. It has all that the RWMutex itself has
// for the write lock, it goes to zklock.Multi, and code that takes any kind of lock takes it. [RWMutex.RLocker] returns
// the read lock as a sync.Locker. [RWMutex.Reader] returns a Reader, which is a small value: it need not be kept.
//
// The zero Reader is the read lock of no RWMutex. It has no path and is never held. Its methods that
// return an error fail with [session.ErrInvalid]. Methods that take a context panic if it is nil.
type Reader struct {
	readDoor // for Multi of package zklock

	rw *RWMutex
}

type readDoor = share.Door[Reader]

// Reader returns the read lock.
func (rw *RWMutex) Reader() Reader {
	return Reader{share.DoorTo[Reader](rw.made().readMember), rw}
}

var errNoMutex = fmt.Errorf("rwlock: %w: Reader of no RWMutex", session.ErrInvalid)

// called begins a call. It panics if there is no context, and fails for the zero Reader.
func (r Reader) called(ctx context.Context, method string) (*RWMutex, error) {
	misuse.Context(ctx, method)
	if r.rw == nil {
		return nil, errNoMutex
	}
	return r.rw, nil
}

// Lock is [RWMutex.RLock].
func (r Reader) Lock(ctx context.Context) error {
	rw, err := r.called(ctx, "rwlock: Reader.Lock")
	if err != nil {
		return err
	}
	return rw.RLock(ctx)
}

// TryLock is [RWMutex.TryRLock].
func (r Reader) TryLock(ctx context.Context) (bool, error) {
	rw, err := r.called(ctx, "rwlock: Reader.TryLock")
	if err != nil {
		return false, err
	}
	return rw.TryRLock(ctx)
}

// Unlock is [RWMutex.RUnlock].
func (r Reader) Unlock() error {
	if r.rw == nil {
		return errNoMutex
	}
	return r.rw.RUnlock()
}

// Acquire is [RWMutex.Acquire] for the read lock: it returns the read lock as a handle with its own Release, apart from
// RLock and RUnlock. It waits and fails as RLock does, but does not look at owners.
func (r Reader) Acquire(ctx context.Context) (*queue.Lease, error) {
	rw, err := r.called(ctx, "rwlock: Reader.Acquire")
	if err != nil {
		return nil, err
	}
	return rw.read(ctx, false)
}

// TryAcquire is [RWMutex.TryAcquire] for the read lock.
func (r Reader) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	rw, err := r.called(ctx, "rwlock: Reader.TryAcquire")
	if err != nil {
		return nil, err
	}
	return rw.read(ctx, true)
}

// Do is [RWMutex.Do] with the read lock.
func (r Reader) Do(ctx context.Context, f func(context.Context) error) error {
	rw, err := r.called(ctx, "rwlock: Reader.Do")
	if err != nil {
		return err
	}
	return rw.reads.Do(ctx, rw.readAsOwner, f)
}

// TryDo is [RWMutex.TryDo] with the read lock.
func (r Reader) TryDo(ctx context.Context, f func(context.Context) error) (ran bool, err error) {
	rw, err := r.called(ctx, "rwlock: Reader.TryDo")
	if err != nil {
		return false, err
	}
	return rw.reads.TryDo(ctx, rw.readAsOwner, f)
}

// Held is [RWMutex.Held] for the read lock, that is for RLock, TryRLock, and Lock, TryLock and Do of a Reader of the same
// RWMutex.
func (r Reader) Held() bool { return r.rw != nil && r.rw.reads.Held() }

// Done is [RWMutex.Done] for the read lock. Of several holds it means the latest. Where several
// goroutines share the RWMutex, use Acquire and the Done of its lease.
func (r Reader) Done() <-chan struct{} {
	if r.rw == nil {
		none := make(chan struct{})
		close(none)
		return none
	}
	return r.rw.reads.Done()
}

// Contenders is [RWMutex.Contenders]: readers and writers.
func (r Reader) Contenders(ctx context.Context) ([]queue.Contender, error) {
	rw, err := r.called(ctx, "rwlock: Reader.Contenders")
	if err != nil {
		return nil, err
	}
	return rw.Contenders(ctx)
}

// Path is [RWMutex.Path].
func (r Reader) Path() string {
	if r.rw == nil {
		return ""
	}
	return r.rw.Path()
}

// Manager is [RWMutex.Manager].
func (r Reader) Manager() *session.Manager {
	if r.rw == nil {
		return nil
	}
	return r.rw.Manager()
}

// FullName is [RWMutex.FullName].
func (r Reader) FullName() string {
	if r.rw == nil {
		return ""
	}
	return r.rw.FullName()
}
