package rwlock

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Reader is the read lock of an [RWMutex], with all methods that the RWMutex has for the write lock: for
// zklock.Multi, and for code that takes any kind of lock.
type Reader struct {
	readDoor

	rw *RWMutex
}

type readDoor = share.Door[Reader]

// Reader returns the read lock.
func (rw *RWMutex) Reader() Reader {
	return Reader{share.DoorTo[Reader](&rw.made().read), rw}
}

func (r Reader) made() *RWMutex {
	if r.rw == nil {
		panic("rwlock: Reader not made by RWMutex.Reader")
	}
	return r.rw
}

func (r Reader) called(ctx context.Context, method string) *RWMutex {
	rw := r.made()
	misuse.Context(ctx, method)
	return rw
}

// Lock is [RWMutex.RLock].
func (r Reader) Lock(ctx context.Context) error {
	return r.called(ctx, "rwlock: Reader.Lock").RLock(ctx)
}

// TryLock is [RWMutex.TryRLock].
func (r Reader) TryLock(ctx context.Context) (bool, error) {
	return r.called(ctx, "rwlock: Reader.TryLock").TryRLock(ctx)
}

// Unlock is [RWMutex.RUnlock].
func (r Reader) Unlock() error { return r.made().RUnlock() }

// Acquire is [RWMutex.Acquire] for the read lock.
func (r Reader) Acquire(ctx context.Context) (*queue.Lease, error) {
	return r.called(ctx, "rwlock: Reader.Acquire").read.Acquire(ctx, false)
}

// TryAcquire is [RWMutex.TryAcquire] for the read lock.
func (r Reader) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return r.called(ctx, "rwlock: Reader.TryAcquire").read.Acquire(ctx, true)
}

// Do is [RWMutex.Do] with the read lock.
func (r Reader) Do(ctx context.Context, f func(context.Context) error) error {
	return r.called(ctx, "rwlock: Reader.Do").read.Do(ctx, r.rw.readAsOwner, f)
}

// TryDo is [RWMutex.TryDo] with the read lock.
func (r Reader) TryDo(ctx context.Context, f func(context.Context) error) (ran bool, err error) {
	return r.called(ctx, "rwlock: Reader.TryDo").read.TryDo(ctx, r.rw.readAsOwner, f)
}

// Held is [RWMutex.Held] for the read lock, of all Readers of the RWMutex.
func (r Reader) Held() bool { return r.made().read.Held() }

// Done is [RWMutex.Done] for the read lock. Of several holds it means the latest: use the Done of a lease.
func (r Reader) Done() <-chan struct{} { return r.made().read.Done() }

// Contenders is [RWMutex.Contenders].
func (r Reader) Contenders(ctx context.Context) ([]queue.Contender, error) {
	return r.called(ctx, "rwlock: Reader.Contenders").Contenders(ctx)
}

// Path is [RWMutex.Path].
func (r Reader) Path() string { return r.made().Path() }

// Manager is [RWMutex.Manager].
func (r Reader) Manager() *session.Manager { return r.made().Manager() }
