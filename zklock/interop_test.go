package zklock_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// zk.Lock of go-zookeeper at the same path is the same lock, in either order of arrival.
func TestExcludesZkLock(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	ours := newMutex(t, connect(t), dir)
	theirs := zk.NewLock(testserver.Admin(t), dir, zk.WorldACL(zk.PermAll))

	must(t, ours.Lock(ctx))
	entered := background(theirs.Lock)
	testserver.WaitChildren(t, dir, 2)
	if all, err := ours.Contenders(ctx); err != nil || len(all) != 2 || !all[0].Holder || all[1].Holder {
		t.Errorf("contenders: %+v, %v", all, err)
	}
	pending(t, "zk.Lock beside ours", entered)
	must(t, ours.Unlock())
	must(t, receive(t, "zk.Lock after ours", entered))

	if got, err := ours.TryLock(ctx); got || err != nil {
		t.Errorf("TryLock beside zk.Lock: %v, %v", got, err)
	}
	entered = background(func() error { return ours.Lock(ctx) })
	testserver.WaitChildren(t, dir, 2)
	pending(t, "Lock beside zk.Lock", entered)
	must(t, theirs.Unlock())
	must(t, receive(t, "Lock after zk.Lock", entered))
	must(t, ours.Unlock())
}

// Both kinds under load: there is one holder at a time. The fields are atomics only because the race detector does not know
// the order that another process makes.
func TestExcludesZkLockUnderLoad(t *testing.T) {
	const each, times = 3, 40
	ctx := patient(t)
	dir := testserver.Path(t)
	var inside, counter atomic.Int64
	var g errgroup.Group
	repeat := func(lock, unlock func() error) {
		g.Go(func() error {
			for range times {
				if err := lock(); err != nil {
					return err
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d inside at once", n)
				}
				v := counter.Load()
				runtime.Gosched()
				counter.Store(v + 1)
				inside.Add(-1)
				if err := unlock(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for range each {
		mx := newMutex(t, connect(t), dir)
		repeat(func() error { return mx.Lock(ctx) }, mx.Unlock)
		theirs := zk.NewLock(testserver.Admin(t), dir, zk.WorldACL(zk.PermAll))
		repeat(theirs.Lock, theirs.Unlock)
	}
	must(t, g.Wait())
	if got := counter.Load(); got != 2*each*times {
		t.Errorf("counter is %d after %d increments under the lock", got, 2*each*times)
	}
}
