package rwlock

import (
	"context"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Reader is the read lock of an [RWMutex], with the method names of other locks: for zklock.Multi, and
// for code that takes any kind of lock. [RWMutex.RLocker] returns it as a sync.Locker.
//
// The zero Reader is the read lock of no RWMutex. It has no path and is never held. Its methods that
// return an error fail with [session.ErrInvalid]. Methods that take a context panic if it is nil.
type Reader struct {
	readDoor // for Multi of package zklock

	rw *RWMutex
}

type readDoor = hold.Door[Reader]

// Reader returns the read lock.
func (rw *RWMutex) Reader() Reader {
	return Reader{hold.DoorTo[Reader](&rw.made().reader), rw}
}

// check returns an error for the zero Reader.
func (r Reader) check() error {
	if r.rw == nil {
		return fmt.Errorf("rwlock: %w: Reader of no RWMutex", session.ErrInvalid)
	}
	return nil
}

// Lock is [RWMutex.RLock].
func (r Reader) Lock(ctx context.Context) error {
	misuse.Context(ctx, "rwlock: Reader.Lock")
	if err := r.check(); err != nil {
		return err
	}
	return r.rw.RLock(ctx)
}

// TryLock is [RWMutex.TryRLock].
func (r Reader) TryLock(ctx context.Context) (bool, error) {
	misuse.Context(ctx, "rwlock: Reader.TryLock")
	if err := r.check(); err != nil {
		return false, err
	}
	return r.rw.TryRLock(ctx)
}

// Unlock is [RWMutex.RUnlock].
func (r Reader) Unlock() error {
	if err := r.check(); err != nil {
		return err
	}
	return r.rw.RUnlock()
}

// Acquire is [RWMutex.RAcquire].
func (r Reader) Acquire(ctx context.Context) (*queue.Lease, error) {
	misuse.Context(ctx, "rwlock: Reader.Acquire")
	if err := r.check(); err != nil {
		return nil, err
	}
	return r.rw.RAcquire(ctx)
}

// TryAcquire is [RWMutex.TryRAcquire].
func (r Reader) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	misuse.Context(ctx, "rwlock: Reader.TryAcquire")
	if err := r.check(); err != nil {
		return nil, err
	}
	return r.rw.TryRAcquire(ctx)
}

// Do is [RWMutex.RDo].
func (r Reader) Do(ctx context.Context, f func(context.Context) error) error {
	misuse.Context(ctx, "rwlock: Reader.Do")
	if err := r.check(); err != nil {
		return err
	}
	return r.rw.RDo(ctx, f)
}

// TryDo is [RWMutex.TryRDo].
func (r Reader) TryDo(ctx context.Context, f func(context.Context) error) (ran bool, err error) {
	misuse.Context(ctx, "rwlock: Reader.TryDo")
	if err := r.check(); err != nil {
		return false, err
	}
	return r.rw.TryRDo(ctx, f)
}

// Held is [RWMutex.RHeld].
func (r Reader) Held() bool { return r.rw != nil && r.rw.RHeld() }

// Done is [RWMutex.RDone].
func (r Reader) Done() <-chan struct{} {
	if r.rw == nil {
		return hold.Closed
	}
	return r.rw.RDone()
}

// Contenders is [RWMutex.Contenders]: readers and writers.
func (r Reader) Contenders(ctx context.Context) ([]queue.Contender, error) {
	misuse.Context(ctx, "rwlock: Reader.Contenders")
	if err := r.check(); err != nil {
		return nil, err
	}
	return r.rw.Contenders(ctx)
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
