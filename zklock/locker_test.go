package zklock_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// panicOf returns what f panics with, nil if it does not.
func panicOf(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// A Locker can replace a sync.Mutex, here under a sync.Cond.
func TestLockerUnderCond(t *testing.T) {
	const items = 50
	dir := testserver.Path(t)
	mx := newMutex(t, connect(t), dir)
	c := sync.NewCond(mx.Locker(nil))
	// The race detector knows nothing of the order that ZooKeeper makes. But the Mutex also orders the
	// goroutines of one process, so queue needs no atomics.
	var queue []int
	consumed := background(func() error {
		for want := range items {
			c.L.Lock()
			for len(queue) == 0 {
				c.Wait()
			}
			if queue[0] != want {
				return fmt.Errorf("item %d, want %d", queue[0], want)
			}
			queue = queue[1:]
			c.Signal()
			c.L.Unlock()
		}
		return nil
	})
	produced := background(func() error {
		for i := range items {
			produce(c, &queue, i)
		}
		return nil
	})
	must(t, receive(t, "the producer", produced))
	must(t, receive(t, "the consumer", consumed))
	testserver.WaitChildren(t, dir, 0)
}

func produce(c *sync.Cond, queue *[]int, item int) {
	c.L.Lock()
	defer c.L.Unlock()
	for len(*queue) >= 3 {
		c.Wait()
	}
	*queue = append(*queue, item)
	c.Signal()
}

// Lockers of several processes exclude each other, and share the slot of their Mutex.
func TestLockerExcludes(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	mx := newMutex(t, connect(t), dir)
	l := mx.Locker(nil)
	rival := newMutex(t, connect(t), dir).Locker(nil)
	l.Lock()
	entered := background(func() error {
		rival.Lock()
		return nil
	})
	testserver.WaitChildren(t, dir, 2)
	pending(t, "Lock of the rival", entered)
	if !mx.Held() {
		t.Error("locked through a Locker, and not held")
	}
	must(t, mx.Unlock()) // of the Mutex instead of the Locker
	must(t, receive(t, "Lock of the rival", entered))
	if got, err := mx.TryLock(ctx); got || err != nil {
		t.Errorf("TryLock beside a locked Locker: %v, %v", got, err)
	}
	rival.Unlock()
	must(t, mx.Lock(ctx))
	l.Unlock()
	testserver.WaitChildren(t, dir, 0)
}

// Unlock of an unheld lock panics, as that of sync.Mutex does.
func TestLockerUnlockUnheld(t *testing.T) {
	l := newMutex(t, connect(t), testserver.Path(t)).Locker(nil)
	if panicOf(l.Unlock) == nil {
		t.Error("Unlock of a lock never locked does not panic")
	}
	lockUnlockOnce(l)
	if panicOf(l.Unlock) == nil {
		t.Error("second Unlock does not panic")
	}
}

// onLost is called once for each hold that is lost, with the reason, and not for a hold that is unlocked.
// Unlock after a loss does not panic.
func TestLockerOnLost(t *testing.T) {
	proxy := testserver.Proxy(t)
	dir := testserver.Path(t)
	m := testserver.Connect(t, proxy.Addr())
	mx := newMutex(t, m, dir)
	losses := make(chan error, 100)
	l := mx.Locker(func(err error) { losses <- err })
	for range 3 {
		lockUnlockOnce(l)
		l.Lock()
		expire(t, proxy, m)
		wantErr(t, "onLost", receive(t, "onLost", losses), session.ErrLost)
		if mx.Held() {
			t.Error("held when onLost was called")
		}
		if v := panicOf(l.Unlock); v != nil {
			t.Errorf("Unlock of a lost lock panics: %v", v)
		}
	}
	must(t, m.Close()) // ends everything that might still call onLost
	if n := len(losses); n != 0 {
		t.Errorf("onLost was called %d times more than there were losses: %v", n, <-losses)
	}
}

// A Locker's Lock goes on in the next session when its session is lost.
func TestLockerOutlivesSession(t *testing.T) {
	proxy := testserver.Proxy(t)
	dir := testserver.Path(t)
	m := testserver.Connect(t, proxy.Addr())
	mx := newMutex(t, m, dir)
	holder := newMutex(t, connect(t), dir)
	must(t, holder.Lock(patient(t)))
	l := mx.Locker(nil)
	entered := background(func() error {
		l.Lock()
		return nil
	})
	testserver.WaitChildren(t, dir, 2)
	old := testserver.Session(t, m).ID()
	expire(t, proxy, m)
	zktest.Eventually(t, testserver.Patience, "another session", func() bool {
		return testserver.Session(t, m).ID() != old
	})
	testserver.WaitChildren(t, dir, 2)
	pending(t, "Lock", entered)
	must(t, holder.Unlock())
	must(t, receive(t, "Lock", entered))
	l.Unlock()
}

func lockUnlockOnce(l sync.Locker) {
	l.Lock()
	defer l.Unlock()
}
