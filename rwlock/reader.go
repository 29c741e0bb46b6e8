package rwlock

import (
	"context"

	"github.com/turnstile-go/turnstile/queue"
)

// Reader is the read lock of an [RWMutex], under the names that a lock has: for
// zklock.Multi, and for code that does not care which lock it is given. Every method is
// that of the RWMutex with an R before its name.
type Reader struct{ rw *RWMutex }

// Reader returns the read lock alone.
func (rw *RWMutex) Reader() Reader { return Reader{rw} }

// Lock is [RWMutex.RLock].
func (r Reader) Lock(ctx context.Context) error { return r.rw.RLock(ctx) }

// TryLock is [RWMutex.TryRLock].
func (r Reader) TryLock(ctx context.Context) (bool, error) { return r.rw.TryRLock(ctx) }

// Unlock is [RWMutex.RUnlock].
func (r Reader) Unlock() error { return r.rw.RUnlock() }

// Acquire is [RWMutex.RAcquire].
func (r Reader) Acquire(ctx context.Context) (*queue.Lease, error) { return r.rw.RAcquire(ctx) }

// TryAcquire is [RWMutex.TryRAcquire].
func (r Reader) TryAcquire(ctx context.Context) (*queue.Lease, error) { return r.rw.TryRAcquire(ctx) }

// Do is [RWMutex.RDo].
func (r Reader) Do(ctx context.Context, f func(context.Context) error) error {
	return r.rw.RDo(ctx, f)
}

// Held is [RWMutex.RHeld].
func (r Reader) Held() bool { return r.rw.RHeld() }

// Path returns the lock's path, which is the same for readers and writers.
func (r Reader) Path() string { return r.rw.Path() }

// FullName is [RWMutex.FullName].
func (r Reader) FullName() string { return r.rw.FullName() }
