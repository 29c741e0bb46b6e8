package simulation

import (
	"context"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/zklock"
)

// keyLock is the lock of one key, which its Keyed forgets between two uses.
type keyLock struct {
	all *zklock.Keyed
	key string
}

func (l keyLock) Lock(ctx context.Context) error            { return l.all.Lock(ctx, l.key) }
func (l keyLock) TryLock(ctx context.Context) (bool, error) { return l.all.TryLock(ctx, l.key) }
func (l keyLock) Unlock() error                             { return l.all.Unlock(l.key) }
func (l keyLock) Held() bool                                { return l.all.Held(l.key) }
func (l keyLock) Acquire(ctx context.Context) (*queue.Lease, error) {
	return l.all.Acquire(ctx, l.key)
}
func (l keyLock) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return l.all.TryAcquire(ctx, l.key)
}
func (l keyLock) Do(ctx context.Context, f func(context.Context) error) error {
	return l.all.Do(ctx, l.key, f)
}

// key makes the lock of a key that is the name of a directory.
func (b *builder) key(name string, opts ...zklock.Option) keyLock {
	all, err := zklock.NewKeyed(b.m, b.path, opts...)
	b.failed(err)
	return keyLock{all, name}
}

// rwKey is the read-write lock of one key. It has no Unlock, so each hold has a lease of its own.
type rwKey struct {
	all *rwlock.Keyed
	key string
}

type keyWriter struct{ rwKey }

func (l keyWriter) Acquire(ctx context.Context) (*queue.Lease, error) {
	return l.all.Acquire(ctx, l.key)
}
func (l keyWriter) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return l.all.TryAcquire(ctx, l.key)
}

type keyReader struct{ rwKey }

func (l keyReader) Acquire(ctx context.Context) (*queue.Lease, error) {
	return l.all.RAcquire(ctx, l.key)
}
func (l keyReader) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return l.all.TryRAcquire(ctx, l.key)
}

// rwKey makes the lock of a key that is the name of a directory.
func (b *builder) rwKey(name string, opts ...rwlock.Option) rwKey {
	all, err := rwlock.NewKeyed(b.m, b.path, opts...)
	b.failed(err)
	return rwKey{all, name}
}
