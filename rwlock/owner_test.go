package rwlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A read holder that wants the write lock is refused at once, and nothing is sent. The read lock stays held, and other
// readers go on. After it has unlocked the read lock, it gets the write lock.
func TestUpgradeRefused(t *testing.T) {
	m, proxy := proxied(t)
	for held, hold := range map[string]func(context.Context, *rwlock.RWMutex, func(context.Context) error) error{
		"RLock": func(ctx context.Context, rw *rwlock.RWMutex, f func(context.Context) error) error {
			return errors.Join(rw.RLock(ctx), f(ctx), rw.RUnlock())
		},
		"TryRLock": func(ctx context.Context, rw *rwlock.RWMutex, f func(context.Context) error) error {
			_, err := rw.TryRLock(ctx)
			return errors.Join(err, f(ctx), rw.RUnlock())
		},
		"Reader.Do": func(ctx context.Context, rw *rwlock.RWMutex, f func(context.Context) error) error {
			return rw.Reader().Do(ctx, f)
		},
		"a downgrade": func(ctx context.Context, rw *rwlock.RWMutex, f func(context.Context) error) error {
			return errors.Join(rw.Lock(ctx), rw.RLock(ctx), rw.Unlock(), f(ctx), rw.RUnlock())
		},
	} {
		t.Run(held, func(t *testing.T) {
			dir := testserver.Path(t)
			rw := newLock(t, m, dir)
			another := newLock(t, connect(t), dir)
			owner := queue.WithOwner(patient(t))
			must(t, hold(owner, rw, func(ctx context.Context) error {
				must(t, another.RLock(patient(t)))
				zktest.Eventually(t, testserver.Patience, "the reader to watch its node", func() bool {
					return proxy.Count(func(r zktest.Request) bool {
						return r.Op == zktest.OpGetData && strings.HasPrefix(r.Path, dir) && strings.Contains(r.Path, queue.PrefixRead)
					}) > 0
				})
				before := proxy.Count(inDir(dir))
				refused(ctx, t, rw, rwlock.ErrUpgrade)
				ended, cancel := context.WithCancel(ctx)
				cancel()
				refused(ended, t, rw, context.Canceled)
				if n := proxy.Count(inDir(dir)) - before; n != 0 {
					t.Errorf("%d requests", n)
				}
				wantPicture(t, another, "R* R*")
				if !rw.Reader().Held() || !another.Reader().Held() || rw.Held() {
					t.Error("not held as before")
				}
				return another.RUnlock()
			}))
			must(t, rw.Lock(owner))
			must(t, rw.Unlock())
			testserver.WaitChildren(t, dir, 0)
		})
	}
}

// refused tries to get the write lock in all ways.
func refused(ctx context.Context, t *testing.T, rw *rwlock.RWMutex, want error) {
	t.Helper()
	wantErr(t, "Lock", rw.Lock(ctx), want)
	got, err := rw.TryLock(ctx)
	wantErr(t, "TryLock", err, want)
	if got {
		t.Error("TryLock returned true beside an error")
	}
	wantErr(t, "Do", rw.Do(ctx, func(context.Context) error {
		t.Error("called")
		return nil
	}), want)
}

// Only the owner of the write lock reads beside it: another one waits, and so does the owner itself through another RWMutex, or
// with Acquire, which does not look at owners.
func TestOthersWaitForOwner(t *testing.T) {
	m := connect(t)
	for _, tt := range []struct {
		name string
		get  func(owner context.Context, rw *rwlock.RWMutex) error
	}{
		{"RLock of another owner", func(owner context.Context, rw *rwlock.RWMutex) error {
			return errors.Join(rw.RLock(queue.WithOwner(owner)), rw.RUnlock())
		}},
		{"RLock of the owner through another RWMutex", func(owner context.Context, rw *rwlock.RWMutex) error {
			return newLock(t, m, rw.Path()).RLock(owner)
		}},
		{"Acquire of a reader by the owner", func(owner context.Context, rw *rwlock.RWMutex) error {
			l, err := rw.Reader().Acquire(owner)
			if err != nil {
				return err
			}
			return l.Release(owner)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			owner := queue.WithOwner(patient(t))
			dir := testserver.Path(t)
			rw := newLock(t, m, dir)
			must(t, rw.Lock(owner))
			entered := background(func() error { return tt.get(owner, rw) })
			testserver.WaitChildren(t, dir, 2) // it waits in the queue behind the holder
			pending(t, tt.name, entered)
			must(t, rw.Unlock())
			must(t, receive(t, tt.name, entered))
			wantErr(t, "one Unlock more", rw.Unlock(), rwlock.ErrNotHeld)
		})
	}
}

// Goroutines of one owner lock at the same time. Each call gets the lock or ErrUpgrade, and each hold can be given back.
func TestGoroutinesOfOneOwner(t *testing.T) {
	const goroutines, rounds = 4, 25
	dir := testserver.Path(t)
	rw := newLock(t, connect(t), dir)
	owner := queue.WithOwner(patient(t))
	var g errgroup.Group
	for range goroutines {
		g.Go(func() error {
			for range rounds {
				err := rw.Lock(owner)
				if errors.Is(err, rwlock.ErrUpgrade) {
					continue // another one reads
				}
				if err != nil {
					return err
				}
				if err := errors.Join(rw.RLock(owner), rw.Unlock(), rw.RUnlock()); err != nil {
					return err
				}
			}
			return nil
		})
		g.Go(func() error {
			for range rounds {
				if err := errors.Join(rw.RLock(owner), rw.RUnlock()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(t, g.Wait())
	wantErr(t, "Unlock", rw.Unlock(), rwlock.ErrNotHeld)
	wantErr(t, "RUnlock", rw.RUnlock(), rwlock.ErrNotHeld)
	testserver.WaitChildren(t, dir, 0)
}

// RUnlock gives back a hold without an owner before an owner's hold, so that the owner's node stays.
func TestRUnlockLeavesOwners(t *testing.T) {
	dir := testserver.Path(t)
	rw := newLock(t, connect(t), dir)
	owner := queue.WithOwner(patient(t))
	must(t, rw.RLock(owner))
	all, err := rw.Contenders(patient(t))
	must(t, err)
	must(t, rw.RLock(patient(t)))
	must(t, rw.RUnlock())
	left, err := rw.Contenders(patient(t))
	must(t, err)
	if len(left) != 1 || left[0].Path != all[0].Path {
		t.Errorf("left: %+v; want the owner's, %s", left, all[0].Path)
	}
	wantErr(t, "Lock", rw.Lock(owner), rwlock.ErrUpgrade)
	var lease *queue.Lease
	if lease, err = rw.Reader().TryAcquire(patient(t)); err != nil {
		t.Fatal(err)
	}
	must(t, rw.RUnlock()) // does not release the lease of Acquire
	must(t, lease.Err())
	must(t, lease.Release(patient(t)))
}
