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

// An owner that reads enters again while a writer waits, in all ways, without a request. A call without that owner waits
// behind the writer. Owners of zklock count too.
func TestReaderReenters(t *testing.T) {
	dir := testserver.Path(t)
	m, proxy := proxied(t)
	rw := newLock(t, m, dir)
	owner := queue.WithOwner(patient(t))
	must(t, rw.RLock(owner))
	writer := newLock(t, connect(t), dir)
	written := queued(t, dir, 2, writer.Lock)
	wantPicture(t, writer, "R* W")

	zktest.Eventually(t, testserver.Patience, "the reader to watch its node", func() bool {
		return proxy.Count(zktest.On(zktest.OpGetData, dir+"/")) > 0
	})
	proxy.ResetRequests()
	must(t, rw.RLock(owner))
	wantTry(t, "TryRLock", rw.TryRLock, owner, true)
	must(t, rw.Reader().Do(owner, func(ctx context.Context) error {
		return errors.Join(rw.RLock(ctx), rw.RUnlock(), ctx.Err())
	}))
	if n := proxy.Count(inDir(dir)); n != 0 {
		t.Errorf("%d requests for entering again", n)
	}
	wantTry(t, "TryRLock without an owner", rw.TryRLock, patient(t), false)
	wantTry(t, "TryRLock of another owner", rw.TryRLock, queue.WithOwner(owner), false)
	other := queued(t, dir, 3, rw.RLock)
	wantPicture(t, writer, "R* W R")
	for range 3 {
		pending(t, "the writer", written)
		pending(t, "the other reader", other)
		must(t, rw.RUnlock())
	}
	must(t, receive(t, "the writer", written))
	wantPicture(t, writer, "W* R")
	must(t, writer.Unlock())
	must(t, receive(t, "the other reader", other))
	must(t, rw.RUnlock())
	wantErr(t, "one RUnlock more", rw.RUnlock(), rwlock.ErrNotHeld)
	testserver.WaitChildren(t, dir, 0)
}

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

// Two owners that read and both want to write are both refused. Without owners the two would wait for each other.
func TestTwoUpgradesRefused(t *testing.T) {
	dir := testserver.Path(t)
	var g errgroup.Group
	reading := make(chan struct{})
	for range 2 {
		rw := newLock(t, connect(t), dir)
		ctx := queue.WithOwner(patient(t))
		g.Go(func() error {
			return rw.Reader().Do(ctx, func(ctx context.Context) error {
				select { // both hold the read lock
				case reading <- struct{}{}:
				case <-reading:
				case <-ctx.Done():
					return ctx.Err()
				}
				if err := rw.Lock(ctx); !errors.Is(err, rwlock.ErrUpgrade) {
					return errors.Join(errors.New("upgrade"), err)
				}
				return nil
			})
		})
	}
	must(t, g.Wait())
	testserver.WaitChildren(t, dir, 0)
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

// One owner and readers without an owner share one RWMutex, while a writer of another process always wants the lock.
// RUnlock does not say whose hold it gives back. The owner's hold stays known all the same: the owner never waits behind
// the writer for the read lock that it has, and it always gets ErrUpgrade.
func TestOwnerAmongOthers(t *testing.T) {
	const others, rounds = 3, 25
	dir := testserver.Path(t)
	rw := newLock(t, connect(t), dir)
	writer := newLock(t, connect(t), dir)
	ctx, cancel := context.WithCancel(patient(t))
	defer cancel()
	var g errgroup.Group
	again := func(f func() error) {
		g.Go(func() error {
			for ctx.Err() == nil {
				if err := f(); err != nil && !errors.Is(err, context.Canceled) {
					return err
				}
			}
			return nil
		})
	}
	for range others {
		again(func() error {
			if err := rw.RLock(ctx); err != nil {
				return err
			}
			return rw.RUnlock()
		})
	}
	again(func() error { return writer.Do(ctx, func(context.Context) error { return nil }) })
	for i := range rounds {
		owner := queue.WithOwner(ctx)
		if i%2 == 0 {
			must(t, rw.RLock(owner))
		} else {
			must(t, rw.Lock(owner))
			must(t, rw.RLock(owner))
			must(t, rw.Unlock())
		}
		wantErr(t, "Lock", rw.Lock(owner), rwlock.ErrUpgrade)
		must(t, rw.RLock(owner))
		must(t, rw.Reader().Do(owner, rw.RLock))
		for range 2 {
			must(t, rw.RUnlock())
			wantErr(t, "Lock", rw.Lock(owner), rwlock.ErrUpgrade)
		}
		must(t, rw.RUnlock())
	}
	cancel()
	must(t, g.Wait())
	wantErr(t, "one RUnlock more", rw.RUnlock(), rwlock.ErrNotHeld)
	testserver.WaitChildren(t, dir, 0)
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
