//go:build linux

package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/elected"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	jobs "github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/zklock"
)

func openMutex(o *ours, at string) (draws, error) {
	var opts []zklock.Option
	switch name := path.Base(at); {
	case name == localName:
		opts = []zklock.Option{zklock.WithLocalHandover(handOvers), zklock.WithAsyncRelease()}
	case name == keptName && o.lazy > 0:
		opts = []zklock.Option{zklock.WithLazyRelease(o.lazy)}
	}
	m, err := zklock.New(o.m, at, opts...)
	o.made[path.Base(at)] = m
	way := anyWay(m, claim{}, func() (lock, error) { return m, nil })
	return func(r *rand.Rand) acquires {
		switch n := r.IntN(64); {
		case n == 0:
			return func(context.Context) (*hold, error) {
				l := m.Locker(nil)
				l.Lock()
				return slotHold(m.Held, func() error { l.Unlock(); return nil }, claim{}), nil
			}
		case n == 1: // asks one of the contenders to give the lock up: that ends the context of a Do
			return func(ctx context.Context) (*hold, error) {
				all, err := m.Contenders(ctx)
				if err == nil && len(all) > 0 {
					err = zklock.Revoke(ctx, o.m, all[r.IntN(len(all))].Path)
				}
				return nil, errors.Join(errRevoked, err)
			}
		}
		return way(r)
	}, err
}

var errRevoked = errors.New("a contender was asked to leave")

// openKeys has keys that are always in use, and others that are used once. Of these nothing may stay.
func openKeys(o *ours, at string) (draws, error) {
	k, err := zklock.NewKeyed(o.m, at, zklock.WithLocalHandover(handOvers), zklock.WithLazyRelease(o.timeout/10))
	return func(r *rand.Rand) acquires {
		key, c := anyKey(r)
		one := keyed{k, key}
		return anyWay(one, c, func() (lock, error) { return one, nil })(r)
	}, err
}

func anyKey(r *rand.Rand) (string, claim) {
	n := r.IntN(contestedOf)
	if r.IntN(4) == 0 {
		n = contestedOf + r.IntN(1<<40)
	}
	return fmt.Sprint("key ", n), claim{Of: n + 1}
}

// keyed is the lock of one key.
type keyed struct {
	k   *zklock.Keyed
	key string
}

func (l keyed) Acquire(ctx context.Context) (*queue.Lease, error) { return l.k.Acquire(ctx, l.key) }
func (l keyed) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return l.k.TryAcquire(ctx, l.key)
}
func (l keyed) Lock(ctx context.Context) error            { return l.k.Lock(ctx, l.key) }
func (l keyed) TryLock(ctx context.Context) (bool, error) { return l.k.TryLock(ctx, l.key) }
func (l keyed) Unlock() error                             { return l.k.Unlock(l.key) }
func (l keyed) Held() bool                                { return l.k.Held(l.key) }
func (l keyed) Do(ctx context.Context, f func(context.Context) error) error {
	return l.k.Do(ctx, l.key, f)
}
func (l keyed) TryDo(ctx context.Context, f func(context.Context) error) (bool, error) {
	return l.k.TryDo(ctx, l.key, f)
}

func openRWKeys(o *ours, at string) (draws, error) {
	k, err := rwlock.NewKeyed(o.m, at, rwlock.WithLazyRelease(o.timeout/10))
	return func(r *rand.Rand) acquires {
		key, c := anyKey(r)
		do, tryDo, get, tryGet := k.Do, k.TryDo, k.Acquire, k.TryAcquire
		if r.IntN(3) > 0 {
			c.Weight, do, tryDo, get, tryGet = 1, k.RDo, k.TryRDo, k.RAcquire, k.TryRAcquire
		}
		switch r.IntN(8) {
		case 0:
			return byDo(func(ctx context.Context, f func(context.Context) error) (bool, error) { return tryDo(ctx, key, f) }, c)
		case 1, 2:
			return byDo(blocking(func(ctx context.Context, f func(context.Context) error) error { return do(ctx, key, f) }), c)
		case 3:
			get = tryGet
		}
		return byLease(func(ctx context.Context) (*queue.Lease, error) { return get(ctx, key) }, c)
	}, err
}

func openRW(o *ours, at string) (draws, error) {
	var opts []rwlock.Option
	kept := path.Base(at) == keptRWName
	if kept && o.lazy > 0 {
		opts = append(opts, rwlock.WithLazyRelease(o.lazy))
	}
	rw, err := rwlock.New(o.m, at, opts...)
	if err != nil {
		return nil, err
	}
	o.made[path.Base(at)] = rw
	writer := anyWay(rw, claim{}, func() (lock, error) { return rwlock.New(o.m, at, opts...) })
	reader := anyWay(rw.Reader(), claim{Weight: 1}, func() (lock, error) {
		own, err := rwlock.New(o.m, at, opts...)
		return own.Reader(), err
	})
	var last atomic.Int64
	return func(r *rand.Rand) acquires {
		n := r.IntN(16)
		if kept { // it does the same several times in a row, so that the place is used again
			if r.IntN(8) == 0 {
				last.Store(int64(n))
			}
			n = int(last.Load())
		}
		switch {
		case n < 5:
			return writer(r)
		case n < 8:
			return func(ctx context.Context) (*hold, error) { return o.writeThenRead(ctx, at) }
		default:
			return reader(r)
		}
	}, nil
}

// writeThenRead takes the write lock, to go on as a reader later. It uses an owner, and a lock object of its
// own, which knows its holds. Its releases wait for no server.
func (o *ours) writeThenRead(ctx context.Context, at string) (*hold, error) {
	rw, err := rwlock.New(o.m, at, rwlock.WithAsyncRelease())
	if err != nil {
		return nil, err
	}
	owner := queue.WithOwner(context.Background())
	if err := rw.Lock(merged{ctx, owner}); err != nil {
		return nil, err
	}
	h := slotHold(rw.Held, rw.Unlock, claim{})
	h.downgrade = func() error {
		if err := rw.RLock(owner); err != nil {
			return err
		}
		reader := slotHold(rw.Reader().Held, rw.RUnlock, claim{Weight: 1})
		h.claim, h.held, h.release = reader.claim, reader.held, reader.release
		return rw.Unlock()
	}
	return h, nil
}

// merged ends with a context and has the values of another.
type merged struct {
	context.Context
	values context.Context
}

func (m merged) Value(key any) any { return m.values.Value(key) }

func openSemaphore(o *ours, at string) (draws, error) {
	s, err := semaphore.New(o.m, at, leases)
	o.made[path.Base(at)] = s
	return func(r *rand.Rand) acquires {
		n, get := 1+r.IntN(2)*r.IntN(3), s.AcquireN
		if r.IntN(8) == 0 {
			get = s.TryAcquireN
		}
		return byLease(func(ctx context.Context) (*queue.Lease, error) { return get(ctx, n) }, claim{Weight: n})
	}, err
}

func openCurators(o *ours, at string) (draws, error) {
	s, err := semaphore.New(o.m, at, leases, semaphore.WithCuratorLayout())
	return anyWay(s, claim{Weight: 1}, func() (lock, error) {
		return semaphore.New(o.m, at, leases, semaphore.WithCuratorLayout())
	}), err
}

// openElection has candidates that lead once for each acquisition, as long as the context of their Run's function is alive.
// Now and then one asks the leader to resign.
func openElection(o *ours, at string) (draws, error) {
	el, err := election.New(o.m, at)
	return func(r *rand.Rand) acquires {
		if r.IntN(16) == 0 {
			return func(ctx context.Context) (*hold, error) {
				leader, err := el.Leader(ctx)
				if err == nil {
					err = zklock.Revoke(ctx, o.m, leader.Path)
				}
				return nil, errors.Join(errRevoked, err)
			}
		}
		return func(ctx context.Context) (*hold, error) {
			t, err := elected.Acquire(ctx, o.m, at)
			if err != nil {
				return nil, err
			}
			leave := t.Release
			if r.IntN(2) == 0 {
				leave = t.Resign
			}
			return &hold{held: func() bool { return t.Err() == nil }, token: t.Lease.Token, release: func(ctx context.Context) error {
				if err := leave(ctx); !errors.Is(err, queue.ErrReleasePending) { // an election does not say whether it is confirmed
					return err
				}
				return nil
			}}, nil
		}
	}, err
}

// openJob runs a job at a tick of its own each time, which is the time when it asks. Its function is the hold. A tick that is
// overtaken by a later one is no hold.
func openJob(o *ours, at string) (draws, error) {
	job, err := jobs.New(o.m, at)
	run := byDo(func(ctx context.Context, f func(context.Context) error) (bool, error) {
		outcome, err := job.Run(ctx, time.Now().Truncate(time.Millisecond), f)
		return outcome == jobs.Ran, err
	}, claim{})
	return func(*rand.Rand) acquires { return run }, err
}

// multiParts are the locks that the multi-locks take, in the order of their paths.
var multiParts = [][]string{{semaphoreName, mutexName, rwName}, {semaphoreName, localName, rwName}}

// openMulti makes the multi-locks. The locks that they take exist by now, because subjects names multi last.
func openMulti(o *ours, _ string) (draws, error) {
	var multis []*zklock.MultiLock
	for _, parts := range multiParts {
		var all []zklock.ContextLocker
		for _, name := range parts {
			all = append(all, o.made[name])
		}
		lock, err := zklock.Multi(all...)
		if err != nil {
			return nil, err
		}
		multis = append(multis, lock)
	}
	return func(r *rand.Rand) acquires {
		n, way := r.IntN(len(multis)), r.IntN(8)
		return func(ctx context.Context) (*hold, error) { return takeMulti(ctx, multis[n], multiParts[n], way) }
	}, nil
}

func takeMulti(ctx context.Context, lock *zklock.MultiLock, names []string, way int) (h *hold, err error) {
	parts := make([]part, len(names))
	for i, name := range names {
		if parts[i].lock = name; name == semaphoreName {
			parts[i].claim = claim{Weight: 1}
		}
	}
	if way == 0 {
		err = lock.Lock(ctx)
		h = slotHold(lock.Held, lock.Unlock, claim{})
		h.parts = parts
		return h, err
	}
	get := lock.Acquire
	if way == 1 {
		get = lock.TryAcquire
	}
	lease, err := get(ctx)
	if err != nil {
		return nil, err
	}
	// Its token is that of the read-write lock, whose writers exclude each other and never share a token, as holders of the
	// local mutex can.
	token := func(ctx context.Context) (int64, error) {
		var errs []error
		for i, l := range lease.Leases() {
			token, err := l.Token(ctx)
			parts[i].token, errs = token, append(errs, err)
		}
		return parts[slices.Index(names, rwName)].token, errors.Join(errs...)
	}
	return &hold{held: func() bool { return lease.Err() == nil }, token: token, release: lease.Release, parts: parts}, nil
}
