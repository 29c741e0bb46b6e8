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

// Keyed is a mutex for each key of a directory, for example one for each invoice. There may be any number of keys, and
// nobody has to make or to remove their locks:
//
//	invoices, err := zklock.NewKeyed(m, "/locks/invoices")
//	...
//	err = invoices.Do(ctx, id, work)
//
// The lock of a key is the [Mutex] at [Keyed.Path], where other processes, of any library, meet it. All goroutines that
// use the Keyed share one Mutex for a key: Unlock gives back the Lock of another goroutine, owners enter their holds again
// ([queue.WithOwner]), and goroutines share the place of [WithLocalHandover] and [WithLazyRelease]. Another Keyed or Mutex
// at the path excludes this one, also in one process, and shares nothing else with it.
//
// The Keyed forgets a key, with all memory, when nobody uses it: no call is under way, none of its holds waits for its
// Unlock, lost or not, and no place of WithLocalHandover or WithLazyRelease is held or kept. With WithLazyRelease(d) it
// remembers for d whether the places of a key are worth keeping. On the servers, the key's directory is a container node,
// which they remove once it is not used. A call costs a lookup more than that of a Mutex, and a new Mutex if nobody used
// the key: a microsecond, and no request.
type Keyed struct {
	_ misuse.NoCopy

	keys *share.Keys[*Mutex]
}

// made returns the locks of the keys. It panics if NewKeyed has not made k.
func (k *Keyed) made() *share.Keys[*Mutex] {
	if k == nil || k.keys == nil {
		panic("zklock: Keyed not made by NewKeyed")
	}
	return k.keys
}

// enter begins a call for a key, which ends with Leave. It panics if NewKeyed has not made k, or if there is no context.
func (k *Keyed) enter(ctx context.Context, key, call string) *share.Key[*Mutex] {
	keys := k.made()
	misuse.Context(ctx, call)
	return keys.Enter(key)
}

// NewKeyed returns the mutexes of the keys in dir, an absolute path of ZooKeeper, or / for the root of a chroot. All
// of them have the same options. Use dir for these locks alone.
//
// A key is any string. Its lock is at dir/EscapePath(key), so different keys have different locks: see [EscapePath].
//
// NewKeyed does no I/O, and fails as [New] does. A dir that leaves no room for a key of 255 bytes is a bad path.
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

// Lock is [Mutex.Lock] of the key's lock. The key stays in memory until its Unlock.
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

// Acquire is [Mutex.Acquire] of the key's lock. The lease is independent of the Keyed: it may be released at any time.
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

// Held is [Mutex.Held] of the key's lock: of all goroutines that use this Keyed.
func (k *Keyed) Held(key string) bool {
	e := k.made().Enter(key)
	defer e.Leave()
	return e.Lock.Held()
}

// Done is [Mutex.Done] of the key's lock. Without a hold the channel is closed.
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

// Contenders is [Mutex.Contenders] of the key's lock. It returns zk.ErrNoNode if the servers have no directory for the
// key, which nobody uses then.
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
// It serves all locks of this module. Different strings give different elements. Ordinary strings stay as they are. Bytes
// that cannot stay are written as in URLs, as % and two hexadecimal digits. The empty string becomes a lone %. If the
// element were longer than 255 bytes, its end is replaced by the SHA-256 of the string: two such elements are equal only
// if SHA-256 has been broken.
//
// Every server accepts the element. It is never empty, "." or "..", and has no slash. It cannot be taken for a
// contender's node, whose name ends in - or _ and ten digits, or for a directory of Curator or of ZooKeeper itself. So the
// last digit of "order-0123456789" is escaped, and "0123456789" stays.
//
// EscapePath is not idempotent: it escapes an escaped string again. It does not normalize Unicode or case. Normalize
// names yourself if "É" and "é" should be the same lock.
func EscapePath(s string) string { return share.Escape(s) }
