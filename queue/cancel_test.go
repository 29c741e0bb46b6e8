package queue_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A waiter that is cancelled leaves the queue as if it had never been there: the contender behind it
// neither enters early nor is forgotten.
func TestCancelWaiting(t *testing.T) {
	dir := persistentDir(t)
	first := acquire(t, client(t, dir))
	second := enter(t, client(t, dir), 2)
	third := enter(t, client(t, dir), 3)
	second.cancel()
	second.wait(t)
	mustBe(t, second.err, context.Canceled)
	testserver.WaitChildren(t, dir, 2)
	third.waits(t, "the first holds")
	release(t, first)
	l := third.get(t)
	onlyChild(t, l)
	release(t, l)
	testserver.WaitChildren(t, dir, 0)
}

// A cancelled call returns at once, even if the network has gone.
func TestCancelNeedsNoNetwork(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, m := proxied(t, dir)
	before := testserver.Session(t, m).ID()
	holder := acquire(t, client(t, dir))
	w := enter(t, q, 2)
	proxy.Refuse(true)
	proxy.Disconnect()
	w.cancel()
	w.wait(t)
	mustBe(t, w.err, context.Canceled)
	proxy.Heal()
	testserver.WaitChildren(t, dir, 1)
	onlyChild(t, holder)
	if testserver.Session(t, m).ID() != before {
		t.Error("not in the same session: its end removed the node")
	}
	release(t, holder)
}

// A call with an ended context sends nothing, and returns the context's error.
func TestEndedContextSendsNothing(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, _ := proxied(t, dir)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{cancelled, late} {
		_, err := q.Acquire(ctx, ask)
		mustBe(t, err, ctx.Err())
		_, err = q.TryAcquire(ctx, ask)
		mustBe(t, err, ctx.Err())
		_, err = q.Contenders(ctx, mutex)
		mustBe(t, err, ctx.Err())
	}
	release(t, acquire(t, q)) // behind them, had they sent anything
	for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpDelete} {
		if n := proxy.Count(ofContenders(dir, op)); n != 1 {
			t.Errorf("%d requests %v, want the last call's alone", n, op)
		}
	}
	if n := proxy.Count(ofContenders(dir, zktest.OpGetChildren2)); n > 2 {
		t.Errorf("%d listings, want the last call's alone", n)
	}
}

// Closing the manager ends the calls that wait.
func TestCloseEndsWaiting(t *testing.T) {
	dir := persistentDir(t)
	holder := acquire(t, client(t, dir))
	q, _, m := proxied(t, dir)
	w := enter(t, q, 2)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	w.wait(t)
	mustBe(t, w.err, session.ErrClosed)
	testserver.WaitChildren(t, dir, 1)
	release(t, holder)
	_, err := q.Acquire(patient(t), ask)
	mustBe(t, err, session.ErrClosed)
}

// Contexts end at any moment around the grant. A call that returns an error leaves no node. A call that
// returns a lease has the only node that holds. No waiter is forgotten.
func TestCancelRacesGrant(t *testing.T) {
	const managers, waitersEach = 4, 4
	rounds := longtest.Pick(30, 125)
	dir := testserver.Path(t)
	admin := testserver.Admin(t)
	var holders, granted, cancelled atomic.Int64
	var wg sync.WaitGroup
	for range managers {
		m := testserver.Connect(t, testserver.Server(t).Addr(0), session.WithTimeout(long))
		for range waitersEach {
			q := on(t, m, dir)
			wg.Go(func() {
				bound := 30 * time.Millisecond
				for round := 0; round < rounds || granted.Load() == 0 || cancelled.Load() == 0; round++ {
					ctx, cancel := context.WithTimeout(context.Background(), rand.N(bound))
					l, err := q.Acquire(ctx, ask)
					if err != nil {
						if ctx.Err() == nil {
							t.Errorf("Acquire: %v, with its context alive", err)
						}
						cancelled.Add(1)
						cancel()
						bound += bound / 16 // to stay around the grant, however slow the machine
						continue
					}
					granted.Add(1)
					bound -= bound / 16
					if n := holders.Add(1); n != 1 {
						t.Errorf("%d holders", n)
					}
					if ok, _, err := admin.Exists(l.Path()); !ok || err != nil {
						t.Errorf("a lease without a node: %v", err)
					}
					holders.Add(-1)
					cancel() // once granted it changes nothing
					if err := l.Err(); err != nil {
						t.Error(err)
					}
					if err := l.Release(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	t.Logf("%d granted, %d cancelled", granted.Load(), cancelled.Load())
	testserver.WaitChildren(t, dir, 0)
	release(t, acquire(t, client(t, dir)))
}

// A TryAcquire that finds the lock taken leaves no node when it returns.
func TestTryAcquire(t *testing.T) {
	dir := persistentDir(t)
	holder := acquire(t, client(t, dir))
	q := client(t, dir)
	for range 20 {
		l, err := q.TryAcquire(patient(t), ask)
		mustBe(t, err, queue.ErrBusy)
		if l != nil {
			t.Fatal("both a lease and an error")
		}
		onlyChild(t, holder)
	}
	release(t, holder)
	l, err := q.TryAcquire(patient(t), ask)
	if err != nil {
		t.Fatal(err)
	}
	onlyChild(t, l)
	release(t, l)
}
