package rwlock

import (
	"context"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Reader is the read lock of an [RWMutex], under the names that a lock has: for
// zklock.Multi, and for code that does not care which lock it is given. Every method is
// that of the RWMutex with an R before its name. The zero Reader is the read lock of no
// RWMutex: it has no path and is never held, and its other methods fail with
// [session.ErrInvalid].
type Reader struct{ rw *RWMutex }

// Reader returns the read lock alone.
func (rw *RWMutex) Reader() Reader { return Reader{rw.made()} }

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

// Held is [RWMutex.RHeld].
func (r Reader) Held() bool { return r.rw != nil && r.rw.RHeld() }

// Path returns the lock's path, which is the same for readers and writers.
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
