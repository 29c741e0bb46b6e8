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

func openMutex(w *worker, at string) (draws, error) {
	var opts []zklock.Option
	switch name := path.Base(at); {
	case name == localName:
		opts = []zklock.Option{zklock.WithLocalHandover(handOvers), zklock.WithAsyncRelease()}
	case name == keptName && w.lazy() > 0:
		opts = []zklock.Option{zklock.WithLazyRelease(w.lazy())}
	}
	m, err := zklock.New(w.m, at, opts...)
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
					err = zklock.Revoke(ctx, w.m, all[r.IntN(len(all))].Path)
				}
				return nil, errors.Join(errRevoked, err)
			}
		}
		return way(r)
	}, err
}

var errRevoked = errors.New("a contender was asked to leave")

// openKeys has keys that are always in use, and others that are used once. Of these nothing may stay.
func openKeys(w *worker, at string) (draws, error) {
	k, err := zklock.NewKeyed(w.m, at, zklock.WithLocalHandover(handOvers), zklock.WithLazyRelease(w.Timeout/10))
	return func(r *rand.Rand) acquires {
		key, c := anyKey(r)
		if r.IntN(4) == 0 {
			return func(ctx context.Context) (*hold, error) {
				return slotHold(func() bool { return k.Held(key) }, func() error { return k.Unlock(key) }, c), k.Lock(ctx, key)
			}
		}
		return byKey(r, key, c, k.Acquire, k.TryAcquire, k.Do, k.TryDo)
	}, err
}

func openRWKeys(w *worker, at string) (draws, error) {
	k, err := rwlock.NewKeyed(w.m, at, rwlock.WithLazyRelease(w.Timeout/10))
	return func(r *rand.Rand) acquires {
		key, c := anyKey(r)
		if r.IntN(3) == 0 {
			return byKey(r, key, c, k.Acquire, k.TryAcquire, k.Do, k.TryDo)
		}
		c.Weight = 1
		return byKey(r, key, c, k.RAcquire, k.TryRAcquire, k.RDo, k.TryRDo)
	}, err
}

func anyKey(r *rand.Rand) (string, claim) {
	n := r.IntN(contestedOf)
	if r.IntN(4) == 0 {
		n = contestedOf + r.IntN(1<<40)
	}
	return fmt.Sprint("key ", n), claim{Of: n + 1}
}

// byKey draws one of the calls that take the lock of a key.
func byKey(r *rand.Rand, key string, c claim, get, tryGet func(context.Context, string) (*queue.Lease, error),
	do func(context.Context, string, func(context.Context) error) error,
	tryDo func(context.Context, string, func(context.Context) error) (bool, error)) acquires {
	switch r.IntN(8) {
	case 0:
		return byDo(func(ctx context.Context, f func(context.Context) error) (bool, error) { return tryDo(ctx, key, f) }, c)
	case 1, 2:
		return byDo(func(ctx context.Context, f func(context.Context) error) (bool, error) { return true, do(ctx, key, f) }, c)
	case 3:
		get = tryGet
	}
	return byLease(func(ctx context.Context) (*queue.Lease, error) { return get(ctx, key) }, c)
}

func openRW(w *worker, at string) (draws, error) {
	var opts []rwlock.Option
	kept := path.Base(at) == keptRWName
	if kept && w.lazy() > 0 {
		opts = append(opts, rwlock.WithLazyRelease(w.lazy()))
	}
	rw, err := rwlock.New(w.m, at, opts...)
	if err != nil {
		return nil, err
	}
	writer := anyWay(rw, claim{}, func() (lock, error) { return rwlock.New(w.m, at, opts...) })
	reader := anyWay(rw.Reader(), claim{Weight: 1}, func() (lock, error) {
		own, err := rwlock.New(w.m, at, opts...)
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
			return func(ctx context.Context) (*hold, error) { return w.writeThenRead(ctx, at) }
		default:
			return reader(r)
		}
	}, nil
}

// writeThenRead takes the write lock, to go on as a reader later. It uses an owner, and a lock object of its
// own, which knows its holds. Its releases wait for no server.
func (w *worker) writeThenRead(ctx context.Context, at string) (*hold, error) {
	rw, err := rwlock.New(w.m, at, rwlock.WithAsyncRelease())
	if err != nil {
		return nil, err
	}
	owner := queue.WithOwner(ctx)
	if err := rw.Lock(owner); err != nil {
		return nil, err
	}
	h := slotHold(rw.Held, rw.Unlock, claim{})
	h.downgrade = func() error {
		if err := rw.RLock(context.WithoutCancel(owner)); err != nil {
			return err
		}
		reader := slotHold(rw.Reader().Held, rw.RUnlock, claim{Weight: 1})
		h.claim, h.held, h.release = reader.claim, reader.held, reader.release
		return rw.Unlock()
	}
	return h, nil
}

func openSemaphore(w *worker, at string) (draws, error) {
	s, err := semaphore.New(w.m, at, leases)
	return func(r *rand.Rand) acquires {
		n, get := 1+r.IntN(2)*r.IntN(3), s.AcquireN
		if r.IntN(8) == 0 {
			get = s.TryAcquireN
		}
		return byLease(func(ctx context.Context) (*queue.Lease, error) { return get(ctx, n) }, claim{Weight: n})
	}, err
}

func openCurators(w *worker, at string) (draws, error) {
	s, err := semaphore.New(w.m, at, leases, semaphore.WithCuratorLayout())
	return anyWay(s, claim{Weight: 1}, func() (lock, error) {
		return semaphore.New(w.m, at, leases, semaphore.WithCuratorLayout())
	}), err
}

// openElection has candidates that lead once for each acquisition, as long as the context of their Run's function is alive.
// Now and then one asks the leader to resign.
func openElection(w *worker, at string) (draws, error) {
	el, err := election.New(w.m, at)
	return func(r *rand.Rand) acquires {
		if r.IntN(16) == 0 {
			return func(ctx context.Context) (*hold, error) {
				leader, err := el.Leader(ctx)
				if err == nil {
					err = zklock.Revoke(ctx, w.m, leader.Path)
				}
				return nil, errors.Join(errRevoked, err)
			}
		}
		return func(ctx context.Context) (*hold, error) {
			t, err := elected.Acquire(ctx, w.m, at)
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
func openJob(w *worker, at string) (draws, error) {
	job, err := jobs.New(w.m, at)
	run := byDo(func(ctx context.Context, f func(context.Context) error) (bool, error) {
		outcome, err := job.Run(ctx, time.Now().Truncate(time.Millisecond), f)
		return outcome == jobs.Ran, err
	}, claim{})
	return func(*rand.Rand) acquires { return run }, err
}

// openMulti takes a semaphore's lease, a mutex and a write lock together. The token is that of the write lock.
func openMulti(w *worker, at string) (draws, error) {
	sem, err := semaphore.New(w.m, at+"/semaphore", leases)
	mx, errMutex := zklock.New(w.m, at+"/mutex", zklock.WithLocalHandover(handOvers))
	rw, errRW := rwlock.New(w.m, at+"/rwlock")
	if err := errors.Join(err, errMutex, errRW); err != nil {
		return nil, err
	}
	all, err := zklock.Multi(sem, mx, rw)
	return func(r *rand.Rand) acquires {
		get := all.Acquire
		switch r.IntN(8) {
		case 0:
			return func(ctx context.Context) (*hold, error) {
				return slotHold(all.Held, all.Unlock, claim{}), all.Lock(ctx)
			}
		case 1:
			get = all.TryAcquire
		}
		return func(ctx context.Context) (*hold, error) {
			lease, err := get(ctx)
			if err != nil {
				return nil, err
			}
			i := slices.IndexFunc(lease.Leases(), func(l *queue.Lease) bool { return path.Dir(l.Path()) == rw.Path() })
			return &hold{held: func() bool { return lease.Err() == nil }, token: lease.Leases()[i].Token, release: lease.Release}, nil
		}
	}, err
}
