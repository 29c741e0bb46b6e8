package rwlock

import (
	"context"
	"fmt"
	"slices"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Keyed is a read-write lock for each key of a directory, for example one for each account. It is the Keyed of
// package zklock, with the locks of this package, and only the calls that know their own hold: an Unlock could give
// back the hold of another goroutine. RDo, TryRDo, RAcquire and TryRAcquire are those of readers.
type Keyed struct {
	_ misuse.NoCopy

	keys *share.Keys[*RWMutex]
}

func (k *Keyed) made() *share.Keys[*RWMutex] {
	if k == nil || k.keys == nil {
		panic("rwlock: Keyed not made by NewKeyed")
	}
	return k.keys
}

func (k *Keyed) enter(ctx context.Context, key, call string) *share.Key[*RWMutex] {
	keys := k.made()
	misuse.Context(ctx, call)
	return keys.Enter(key)
}

// NewKeyed returns the locks of the keys in dir, as NewKeyed of package zklock does. The lock of a key is the
// [RWMutex] at [Keyed.Path].
func NewKeyed(m *session.Manager, dir string, opts ...Option) (*Keyed, error) {
	opts = slices.Clone(opts)
	keys, err := share.NewKeys(dir, func(path string) (*RWMutex, share.State, error) {
		rw, err := open(m, path, opts)
		if err != nil {
			return nil, nil, err
		}
		return rw, &rw.write, nil
	})
	if err != nil {
		return nil, fmt.Errorf("rwlock: %w", err)
	}
	return &Keyed{keys: keys}, nil
}

// Do is [RWMutex.Do] of the key's lock.
func (k *Keyed) Do(ctx context.Context, key string, f func(context.Context) error) error {
	e := k.enter(ctx, key, "rwlock: Keyed.Do")
	defer e.Leave()
	return e.Lock.Do(ctx, f)
}

// TryDo is [RWMutex.TryDo] of the key's lock.
func (k *Keyed) TryDo(ctx context.Context, key string, f func(context.Context) error) (ran bool, err error) {
	e := k.enter(ctx, key, "rwlock: Keyed.TryDo")
	defer e.Leave()
	return e.Lock.TryDo(ctx, f)
}

// RDo is [Reader.Do] of the key's lock.
func (k *Keyed) RDo(ctx context.Context, key string, f func(context.Context) error) error {
	e := k.enter(ctx, key, "rwlock: Keyed.RDo")
	defer e.Leave()
	return e.Lock.Reader().Do(ctx, f)
}

// TryRDo is [Reader.TryDo] of the key's lock.
func (k *Keyed) TryRDo(ctx context.Context, key string, f func(context.Context) error) (ran bool, err error) {
	e := k.enter(ctx, key, "rwlock: Keyed.TryRDo")
	defer e.Leave()
	return e.Lock.Reader().TryDo(ctx, f)
}

// Acquire is [RWMutex.Acquire] of the key's lock.
func (k *Keyed) Acquire(ctx context.Context, key string) (*queue.Lease, error) {
	e := k.enter(ctx, key, "rwlock: Keyed.Acquire")
	defer e.Leave()
	return e.Lock.Acquire(ctx)
}

// TryAcquire is [RWMutex.TryAcquire] of the key's lock.
func (k *Keyed) TryAcquire(ctx context.Context, key string) (*queue.Lease, error) {
	e := k.enter(ctx, key, "rwlock: Keyed.TryAcquire")
	defer e.Leave()
	return e.Lock.TryAcquire(ctx)
}

// RAcquire is [Reader.Acquire] of the key's lock.
func (k *Keyed) RAcquire(ctx context.Context, key string) (*queue.Lease, error) {
	e := k.enter(ctx, key, "rwlock: Keyed.RAcquire")
	defer e.Leave()
	return e.Lock.Reader().Acquire(ctx)
}

// TryRAcquire is [Reader.TryAcquire] of the key's lock.
func (k *Keyed) TryRAcquire(ctx context.Context, key string) (*queue.Lease, error) {
	e := k.enter(ctx, key, "rwlock: Keyed.TryRAcquire")
	defer e.Leave()
	return e.Lock.Reader().TryAcquire(ctx)
}

// Contenders is [RWMutex.Contenders] of the key's lock. It returns zk.ErrNoNode if nobody uses the key.
func (k *Keyed) Contenders(ctx context.Context, key string) ([]queue.Contender, error) {
	e := k.enter(ctx, key, "rwlock: Keyed.Contenders")
	defer e.Leave()
	return e.Lock.Contenders(ctx)
}

// Path returns the path of the key's lock. [New] makes a lock at that path for what a Keyed does not have.
func (k *Keyed) Path(key string) string { return k.made().Path(key) }
