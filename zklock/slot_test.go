package zklock_test

import (
	"context"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Many goroutines on one Mutex, and others elsewhere, are all in the one queue: each gets
// in when its turn in that has come.
func TestGoroutinesOfOneMutex(t *testing.T) {
	const waiters = 8
	ctx := patient(t)
	dir := testserver.Path(t)
	shared := newMutex(t, connect(t), dir)
	elsewhere := newMutex(t, connect(t), dir)
	must(t, shared.Lock(ctx))
	entered := make(chan int, waiters)
	var wg sync.WaitGroup
	for i := range waiters {
		mx := shared
		if i%3 == 2 {
			mx = elsewhere
		}
		wg.Go(func() {
			if err := mx.Lock(ctx); err != nil {
				t.Error(err)
			}
			entered <- i
			if err := mx.Unlock(); err != nil {
				t.Error(err)
			}
		})
		testserver.WaitChildren(t, dir, i+2) // one after another
	}
	must(t, shared.Unlock())
	wg.Wait()
	for want := range waiters {
		if got := receive(t, "the next", entered); got != want {
			t.Errorf("%d got in, it was the turn of %d", got, want)
		}
	}
}

// lose locks mx and has its session expire. The holder still has the slot then.
func lose(t *testing.T, proxy *zktest.Proxy, m *session.Manager, mx *zklock.Mutex) {
	t.Helper()
	must(t, mx.Lock(patient(t)))
	expire(t, proxy, m)
	waitLost(t, mx)
}

// A Lock after a loss has its place in the queue, but returns only when the holder that
// lost it has unlocked: until then his work may still be going on.
func TestLockWaitsForUnlockOfLostHold(t *testing.T) {
	proxy := testserver.Proxy(t)
	dir := testserver.Path(t)
	m := testserver.Connect(t, proxy.Addr())
	mx := newMutex(t, m, dir)
	lose(t, proxy, m, mx)

	ctx, cancel := context.WithCancel(patient(t))
	entered := background(func() error { return mx.Lock(ctx) })
	waitHolderNode(t, mx)
	pending(t, "Lock while the lost hold stands", entered)
	if mx.Held() {
		t.Error("held, though the lost hold stands")
	}
	// It can be cancelled there, and leaves nothing.
	cancel()
	wantErr(t, "Lock", receive(t, "the cancelled Lock", entered), context.Canceled)
	testserver.WaitChildren(t, dir, 0)

	entered = background(func() error { return mx.Lock(patient(t)) })
	waitHolderNode(t, mx)
	pending(t, "Lock while the lost hold stands", entered)
	wantErr(t, "Unlock of the lost hold", mx.Unlock(), session.ErrLost)
	must(t, receive(t, "Lock after that Unlock", entered))
	if !mx.Held() {
		t.Error("not held after Lock")
	}
	must(t, mx.Unlock())
	testserver.WaitChildren(t, dir, 0)
}

// waitHolderNode waits until somebody is at the head of the queue on the server.
func waitHolderNode(t *testing.T, mx *zklock.Mutex) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "a node at the head of the queue", func() bool {
		all, err := mx.Contenders(patient(t))
		return err == nil && len(all) == 1 && all[0].Holder
	})
}

// One that waits for the slot with a lease of its own, and loses that too, begins anew.
func TestLeaseLostWhileWaitingForSlot(t *testing.T) {
	proxy := testserver.Proxy(t)
	dir := testserver.Path(t)
	m := testserver.Connect(t, proxy.Addr())
	mx := newMutex(t, m, dir)
	lose(t, proxy, m, mx)
	entered := background(func() error { return mx.Lock(patient(t)) })
	for range 3 {
		waitHolderNode(t, mx)
		expire(t, proxy, m)
	}
	waitHolderNode(t, mx)
	pending(t, "Lock while the lost hold stands", entered)
	wantErr(t, "Unlock of the lost hold", mx.Unlock(), session.ErrLost)
	must(t, receive(t, "Lock after that Unlock", entered))
	if !mx.Held() {
		t.Error("not held after Lock")
	}
	must(t, mx.Unlock())
	testserver.WaitChildren(t, dir, 0)
}

// TryLock beside a lost hold that is not unlocked is contended, and leaves nothing for
// the next one to find.
func TestTryLockBesideLostHold(t *testing.T) {
	proxy := testserver.Proxy(t)
	dir := testserver.Path(t)
	m := testserver.Connect(t, proxy.Addr())
	mx := newMutex(t, m, dir)
	lose(t, proxy, m, mx)
	for range 20 {
		got, err := mx.TryLock(patient(t))
		if got || err != nil {
			t.Fatalf("TryLock beside a lost hold: %v, %v", got, err)
		}
		if n := len(testserver.Children(t, dir)); n != 0 {
			t.Fatalf("%d nodes left by a TryLock that failed", n)
		}
	}
	wantErr(t, "Unlock", mx.Unlock(), session.ErrLost)
	got, err := mx.TryLock(patient(t))
	if !got || err != nil {
		t.Errorf("TryLock of a free lock: %v, %v", got, err)
	}
	must(t, mx.Unlock())
}

// The Unlock of a hold that was lost does not free that of another who is in by now.
func TestUnlockOfLostHoldFreesNobody(t *testing.T) {
	proxy := testserver.Proxy(t)
	dir := testserver.Path(t)
	m := testserver.Connect(t, proxy.Addr())
	mx, other := newMutex(t, m, dir), newMutex(t, connect(t), dir)
	lose(t, proxy, m, mx)
	must(t, other.Lock(patient(t)))
	sameSession, err := newMutex(t, m, dir+"-x").Acquire(patient(t))
	must(t, err)
	wantErr(t, "Unlock", mx.Unlock(), session.ErrLost)
	if !other.Held() || sameSession.Err() != nil {
		t.Error("somebody else's lock is gone")
	}
	must(t, other.Unlock())
	must(t, sameSession.Release(patient(t)))
}
