package simulation

import (
	"context"

	"github.com/turnstile-go/turnstile/queue"
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
