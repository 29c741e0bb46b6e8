package zklock_test

import (
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// The goroutines of one Mutex and those of other processes are all in one queue. Each gets the lock in its turn.
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

// lose locks mx and expires its session. The holder then still has the slot.
func lose(t *testing.T, proxy *zktest.Proxy, m *session.Manager, mx *zklock.Mutex) {
	t.Helper()
	must(t, mx.Lock(patient(t)))
	expire(t, proxy, m)
	waitLost(t, mx)
}

// Unlock of a lost hold does not free the lock of the next holder.
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
		t.Error("the other holder's lock is gone")
	}
	must(t, other.Unlock())
	must(t, sameSession.Release(patient(t)))
}
