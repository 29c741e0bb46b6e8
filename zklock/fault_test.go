package zklock_test

import (
	"context"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// faultTimeout is a session timeout for tests in which no session may be lost.
const faultTimeout = 2 * testserver.Patience

// behindProxy returns a mutex whose session has a proxy of its own. The directory exists already, so that
// the first create in it is that of the contender.
func behindProxy(t *testing.T) (mx *zklock.Mutex, proxy *zktest.Proxy, sameSession func(), dir string) {
	t.Helper()
	dir = testserver.Path(t)
	if _, err := testserver.Admin(t).Create(dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	proxy = testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(faultTimeout))
	before := testserver.Session(t, m).ID()
	return newMutex(t, m, dir), proxy, func() {
		t.Helper()
		if testserver.Session(t, m).ID() != before {
			t.Error("not in the same session: its end would have cleared everything up")
		}
	}, dir
}

// A request of Lock or TryLock is lost, or its reply. The mutex is held all the same, through one node,
// which Unlock removes.
func TestLockRequestLost(t *testing.T) {
	arms := map[string]func(*zktest.Proxy, zktest.Match) *zktest.Fault{
		"before": (*zktest.Proxy).CutBefore,
		"after":  (*zktest.Proxy).CutAfterCommit,
	}
	locks := map[string]func(context.Context, *zklock.Mutex) bool{
		"Lock": func(ctx context.Context, mx *zklock.Mutex) bool { return mx.Lock(ctx) == nil },
		"TryLock": func(ctx context.Context, mx *zklock.Mutex) bool {
			ok, err := mx.TryLock(ctx)
			return ok && err == nil
		},
	}
	for when, arm := range arms {
		for name, lock := range locks {
			for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpGetChildren, zktest.OpGetChildren2} {
				t.Run(when+"/"+name+"/"+op.String(), func(t *testing.T) {
					mx, proxy, sameSession, dir := behindProxy(t)
					fault := arm(proxy, zktest.On(op, dir))
					if !lock(patient(t), mx) || !mx.Held() {
						t.Fatal("not locked")
					}
					fault.Release() // in cases without that request
					testserver.WaitChildren(t, dir, 1)
					must(t, mx.Unlock())
					testserver.WaitChildren(t, dir, 0)
					other := newMutex(t, connect(t), dir)
					must(t, other.Lock(patient(t)))
					must(t, other.Unlock())
					sameSession()
				})
			}
		}
	}
}

// Unlock while disconnected gives the mutex up at once. When the connection is back, the next waiter gets
// the lock without a further call.
func TestUnlockDisconnected(t *testing.T) {
	mx, proxy, sameSession, dir := behindProxy(t)
	ctx := t.Context() // it outlives Unlock
	must(t, mx.Lock(ctx))
	other := newMutex(t, connect(t), dir)
	next := background(func() error { return other.Lock(ctx) })
	testserver.WaitChildren(t, dir, 2)
	proxy.Refuse(true)
	proxy.Disconnect()
	must(t, mx.Unlock())
	if mx.Held() {
		t.Error("held after Unlock")
	}
	wantErr(t, "Unlock again", mx.Unlock(), zklock.ErrNotHeld)
	pending(t, "Lock of the next", next)
	proxy.Heal()
	must(t, receive(t, "Lock of the next", next))
	testserver.WaitChildren(t, dir, 1)
	must(t, other.Unlock())
	sameSession()
}

// The reply to the delete is lost. Unlock succeeds, and the delete that is sent again does not hit the
// next holder, which may use the same Mutex.
func TestUnlockReplyLost(t *testing.T) {
	mx, proxy, sameSession, dir := behindProxy(t)
	ctx := patient(t)
	must(t, mx.Lock(ctx))
	next := background(func() error { return mx.Lock(ctx) })
	testserver.WaitChildren(t, dir, 2)
	cut := proxy.CutAfterCommit(zktest.On(zktest.OpDelete, dir))
	must(t, mx.Unlock()) // the connection has broken
	receive(t, "the fault", cut.Hit())
	must(t, receive(t, "Lock of the next", next))
	testserver.WaitChildren(t, dir, 1)
	if !mx.Held() {
		t.Error("the next does not hold")
	}
	must(t, mx.Unlock())
	testserver.WaitChildren(t, dir, 0)
	sameSession()
}

// The end of a Do does not wait for a connection.
func TestDoDisconnected(t *testing.T) {
	mx, proxy, _, dir := behindProxy(t)
	must(t, mx.Do(patient(t), func(context.Context) error {
		proxy.Refuse(true)
		proxy.Disconnect()
		return nil
	}))
	proxy.Heal()
	testserver.WaitChildren(t, dir, 0)
}

// Lock is called and cancelled while there is no connection. It leaves nothing behind later.
func TestLockAbandonedWhileDisconnected(t *testing.T) {
	mx, proxy, sameSession, dir := behindProxy(t)
	proxy.Refuse(true)
	proxy.Disconnect()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	wantErr(t, "Lock", mx.Lock(ctx), context.DeadlineExceeded)
	proxy.Heal()
	must(t, mx.Lock(patient(t)))
	testserver.WaitChildren(t, dir, 1)
	if n := proxy.Count(zktest.On(zktest.OpCreate, dir)); n > 2 { // one may have been sent over the old connection
		t.Errorf("%d creates", n)
	}
	must(t, mx.Unlock())
	testserver.WaitChildren(t, dir, 0)
	sameSession()
}

// The contexts of many calls end around the moment of the grant. A call that returns nil holds the
// lock alone and has a node. A call that returns an error leaves nothing behind.
func TestLockCancelRacesGrant(t *testing.T) {
	const managers, goroutines = 4, 2
	rounds := longtest.Pick(40, 250)
	dir, admin := testserver.Path(t), testserver.Admin(t)
	var inside, granted, cancelled atomic.Int64
	var all []<-chan error
	for n := range managers {
		m := connect(t, session.WithTimeout(faultTimeout))
		shared := newMutex(t, m, dir)
		for i := range goroutines {
			mx := shared
			if n%2 == 1 { // half of them share one Mutex
				mx = newMutex(t, m, dir)
			}
			all = append(all, background(func() error {
				bound := 40 * time.Millisecond
				for round := 0; round < rounds || granted.Load() == 0 || cancelled.Load() == 0; round++ {
					limit := bound * time.Duration(1+(round*7919+i*31)%40) / 40
					ctx, cancel := context.WithTimeout(context.Background(), limit)
					err := mx.Lock(ctx)
					if err != nil {
						if ctx.Err() == nil {
							t.Errorf("Lock: %v, with its context alive", err)
						}
						cancelled.Add(1)
						cancel()
						bound += bound / 16 // to stay near the grant, also on a slow machine
						continue
					}
					granted.Add(1)
					bound -= bound / 16
					if n := inside.Add(1); n != 1 {
						t.Errorf("%d are inside", n)
					}
					cancel() // has no effect any more
					if got, err := mx.Contenders(context.Background()); err != nil || len(got) == 0 {
						t.Errorf("held without a node: %v", err)
					} else if ok, _, err := admin.Exists(got[0].Path); !ok || err != nil || !mx.Held() {
						t.Errorf("%s is not there, or not held: %v", path.Base(got[0].Path), err)
					}
					inside.Add(-1)
					if err := mx.Unlock(); err != nil {
						return err
					}
				}
				return nil
			}))
		}
	}
	for _, done := range all {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(5 * testserver.Patience):
			t.Fatal("they hang")
		}
	}
	t.Logf("%d granted, %d cancelled", granted.Load(), cancelled.Load())
	testserver.WaitChildren(t, dir, 0)
}
