package zklock

import (
	"context"
	"fmt"
	"slices"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Keyed is a mutex for each key of a directory, for example one for each invoice. There may be any number of keys,
// and nobody has to make or to remove their locks:
//
//	invoices, err := zklock.NewKeyed(m, "/locks/invoices")
//	...
//	err = invoices.Do(ctx, id, work)
//
// The lock of a key is the [Mutex] at [Keyed.Path], where other processes, of any library, meet it. All goroutines
// that use the Keyed share one Mutex for a key: Unlock gives back the Lock of another goroutine.
//
// The Keyed forgets a key when no call is under way, no hold waits for its Unlock, and no place of [WithLocalHandover]
// or [WithLazyRelease] is held or kept.
type Keyed struct {
	_ misuse.NoCopy

	keys *share.Keys[*Mutex]
}

func (k *Keyed) made() *share.Keys[*Mutex] {
	if k == nil || k.keys == nil {
		panic("zklock: Keyed not made by NewKeyed")
	}
	return k.keys
}

func (k *Keyed) enter(ctx context.Context, key, call string) *share.Key[*Mutex] {
	keys := k.made()
	misuse.Context(ctx, call)
	return keys.Enter(key)
}

// NewKeyed returns the mutexes of the keys in dir, an absolute path, or / for the root of a chroot. Use dir for these
// locks alone. A key is any string: see [EscapePath]. NewKeyed does no I/O, and fails as [New] does, also for a dir
// that leaves no room for a key of 255 bytes.
func NewKeyed(m *session.Manager, dir string, opts ...Option) (*Keyed, error) {
	opts = slices.Clone(opts)
	keys, err := share.NewKeys(dir, func(path string) (*Mutex, share.State, error) {
		mx, err := open(m, path, opts)
		if err != nil {
			return nil, nil, err
		}
		return mx, &mx.lock, nil
	})
	if err != nil {
		return nil, fmt.Errorf("zklock: %w", err)
	}
	return &Keyed{keys: keys}, nil
}

// Do is [Mutex.Do] of the key's lock.
func (k *Keyed) Do(ctx context.Context, key string, f func(context.Context) error) error {
	e := k.enter(ctx, key, "zklock: Keyed.Do")
	defer e.Leave()
	return e.Lock.Do(ctx, f)
}

// TryDo is [Mutex.TryDo] of the key's lock.
func (k *Keyed) TryDo(ctx context.Context, key string, f func(context.Context) error) (ran bool, err error) {
	e := k.enter(ctx, key, "zklock: Keyed.TryDo")
	defer e.Leave()
	return e.Lock.TryDo(ctx, f)
}

// Lock is [Mutex.Lock] of the key's lock.
func (k *Keyed) Lock(ctx context.Context, key string) error {
	e := k.enter(ctx, key, "zklock: Keyed.Lock")
	defer e.Leave()
	return e.Lock.Lock(ctx)
}

// TryLock is [Mutex.TryLock] of the key's lock.
func (k *Keyed) TryLock(ctx context.Context, key string) (bool, error) {
	e := k.enter(ctx, key, "zklock: Keyed.TryLock")
	defer e.Leave()
	return e.Lock.TryLock(ctx)
}

// Unlock is [Mutex.Unlock] of the key's lock.
func (k *Keyed) Unlock(key string) error {
	e := k.made().Enter(key)
	defer e.Leave()
	return e.Lock.Unlock()
}

// Acquire is [Mutex.Acquire] of the key's lock. The lease is independent of the Keyed.
func (k *Keyed) Acquire(ctx context.Context, key string) (*queue.Lease, error) {
	e := k.enter(ctx, key, "zklock: Keyed.Acquire")
	defer e.Leave()
	return e.Lock.Acquire(ctx)
}

// TryAcquire is [Mutex.TryAcquire] of the key's lock.
func (k *Keyed) TryAcquire(ctx context.Context, key string) (*queue.Lease, error) {
	e := k.enter(ctx, key, "zklock: Keyed.TryAcquire")
	defer e.Leave()
	return e.Lock.TryAcquire(ctx)
}

// Held is [Mutex.Held] of the key's lock.
func (k *Keyed) Held(key string) bool {
	e := k.made().Enter(key)
	defer e.Leave()
	return e.Lock.Held()
}

// Done is [Mutex.Done] of the key's lock.
func (k *Keyed) Done(key string) <-chan struct{} {
	e := k.made().Enter(key)
	defer e.Leave()
	return e.Lock.Done()
}

// Holder is [Mutex.Holder] of the key's lock.
func (k *Keyed) Holder(ctx context.Context, key string) (queue.Contender, error) {
	e := k.enter(ctx, key, "zklock: Keyed.Holder")
	defer e.Leave()
	return e.Lock.Holder(ctx)
}

// Contenders is [Mutex.Contenders] of the key's lock. It returns zk.ErrNoNode if nobody uses the key.
func (k *Keyed) Contenders(ctx context.Context, key string) ([]queue.Contender, error) {
	e := k.enter(ctx, key, "zklock: Keyed.Contenders")
	defer e.Leave()
	return e.Lock.Contenders(ctx)
}

// Path returns the path of the key's lock. [New] makes a lock at that path for what a Keyed does not have, such as
// [Multi] and [Mutex.Locker].
func (k *Keyed) Path(key string) string { return k.made().Path(key) }

// EscapePath turns any string into one element of a path, for a lock that is named after user input or after data of
// another system:
//
//	zklock.New(m, "/locks/"+zklock.EscapePath(name))
//
// Different strings give different elements, and ordinary strings stay as they are. Other bytes are written as % and
// two hexadecimal digits. The empty string becomes a lone %. The end of an element of more than 255 bytes is replaced
// by the SHA-256 of the string. Every server accepts the element. It cannot be taken for a contender's node, which
// ends in - or _ and ten digits, or for a directory of Curator or of ZooKeeper itself.
//
// EscapePath escapes an escaped string again. It does not normalize Unicode or case. Normalize names yourself if "É"
// and "é" should be the same lock.
func EscapePath(s string) string { return share.Escape(s) }
