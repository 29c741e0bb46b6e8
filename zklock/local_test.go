package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Several processes of several goroutines take a lock many times, in every way, some with local hand-over
// and some without. The connections of two of them break all the time. There is one holder at a time. The
// test runs on the shared server, and on one in this process.
func TestLocalExclusion(t *testing.T) {
	longtest.Only(t)
	for what, addr := range map[string]string{
		"shared":     testserver.Server(t).Addr(0),
		"in-process": zktest.Start(t).Addr(),
	} {
		t.Run(what, func(t *testing.T) { localExclusion(t, addr) })
	}
}

func localExclusion(t *testing.T, server string) {
	const processes, goroutines = 4, 6
	const times = 40
	ctx, cancel := context.WithTimeout(context.Background(), 5*testserver.Patience)
	defer cancel()
	dir := testserver.Path(t)
	var p protected
	var r referee
	var g errgroup.Group
	for i := range processes {
		addr, disturb := server, func() {}
		if i < 2 {
			proxy := zktest.StartProxy(t, server)
			addr, disturb = proxy.Addr(), proxy.Disconnect
		}
		var opts []zklock.Option
		if i > 0 { // one has no local hand-over
			opts = append(opts, zklock.WithLocalHandover(1<<i))
		}
		mx := newMutex(t, testserver.Connect(t, addr, session.WithTimeout(faultTimeout)), dir, opts...)
		for range goroutines {
			g.Go(func() error {
				for n := range times {
					if n%10 == 9 {
						disturb()
					}
					if err := giveUpEarly(ctx, mx, n); err != nil {
						return err
					}
					if err := takeOnce(ctx, mx, n%3, func(l *queue.Lease) {
						if l != nil {
							r.enter(l)
						}
						p.use(t, -1)
					}); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	must(t, g.Wait())
	r.check(t)
	if got := p.counter.Load(); got != int64(processes*goroutines*times) {
		t.Errorf("%d holds, want %d", got, processes*goroutines*times)
	}
	m := testserver.Connect(t, server)
	zktest.Eventually(t, testserver.Patience, "no node to be left", func() bool {
		all, err := newMutex(t, m, dir).Contenders(ctx)
		return err == nil && len(all) == 0
	})
}

// giveUpEarly waits for a mutex for no longer than some hundreds of microseconds, now and then.
func giveUpEarly(ctx context.Context, mx *zklock.Mutex, n int) error {
	if n%4 != 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(n%7)*200*time.Microsecond)
	defer cancel()
	err := mx.Lock(ctx)
	if err == nil {
		return ignorePending(mx.Unlock())
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("a Lock that is cancelled: %w", err)
	}
	return nil
}

// Two processes that always want the lock share it. A node is held n+1 times at most, so the other process gets the lock then
// if it has a node by that time, and neither process starves.
func TestLocalShare(t *testing.T) {
	const handovers, goroutines, holds = 4, 40, 1000
	ctx, cancel := context.WithTimeout(context.Background(), 5*testserver.Patience)
	defer cancel()
	dir := testserver.Path(t)
	gate, err := newMutex(t, connect(t), dir).Acquire(ctx)
	must(t, err)
	var mu sync.Mutex
	var shares [2]int             // holds of each process
	turns := make(map[string]int) // holds of each node
	enough := func() bool { return shares[0]+shares[1] >= holds }
	var g errgroup.Group
	for i := range 2 {
		mx := newMutex(t, connect(t, session.WithTimeout(faultTimeout)), dir, zklock.WithLocalHandover(handovers))
		for range goroutines {
			g.Go(func() error {
				for done := false; !done; {
					if err := mx.Do(ctx, func(inside context.Context) error {
						lease, _ := queue.LeaseFrom(inside)
						mu.Lock()
						defer mu.Unlock()
						if done = enough(); !done { // after that some goroutines end
							shares[i]++
							turns[lease.Path()]++
						}
						return nil
					}); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	testserver.WaitChildren(t, dir, 3) // each process has one node, behind that of the gate
	must(t, gate.Release(ctx))
	must(t, g.Wait())
	for node, n := range turns {
		if n > handovers+1 {
			t.Errorf("%s was held %d times, want at most %d", node, n, handovers+1)
		}
	}
	if shares[0] < holds/4 || shares[1] < holds/4 {
		t.Errorf("shares of %v", shares)
	}
	t.Logf("shares of %v", shares)
	testserver.WaitChildren(t, dir, 0)
}

// TryLock finds a holder or waiter of this process without a request. It takes the lock if there is none.
func TestLocalTryLock(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	proxy := testserver.Proxy(t)
	mx := newMutex(t, testserver.Connect(t, proxy.Addr()), dir, zklock.WithLocalHandover(3))
	got, err := mx.TryLock(ctx)
	must(t, err)
	if !got || !mx.Held() {
		t.Fatalf("TryLock of a free lock: %v, held %v", got, mx.Held())
	}
	_, err = mx.Contenders(ctx) // the requests of the Lock are done
	must(t, err)
	proxy.ResetRequests()
	if got, err := mx.TryLock(ctx); got || err != nil {
		t.Errorf("TryLock of a held lock: %v, %v", got, err)
	}
	_, err = mx.TryAcquire(ctx)
	wantErr(t, "TryAcquire", err, queue.ErrBusy)
	if n := proxy.Count(zktest.On(zktest.OpCreate, dir)); n != 0 {
		t.Errorf("%d creates", n)
	}
	must(t, mx.Unlock())
	wantErr(t, "Unlock", mx.Unlock(), zklock.ErrNotHeld)
	other := newMutex(t, connect(t), dir)
	must(t, other.Lock(ctx))
	if got, err := mx.TryLock(ctx); got || err != nil {
		t.Errorf("TryLock of another's lock: %v, %v", got, err)
	}
	must(t, other.Unlock())
	testserver.WaitChildren(t, dir, 0)
}

// An owner enters its hold again while other goroutines of the process wait for the lock.
func TestLocalOwner(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	mx := newMutex(t, connect(t), dir, zklock.WithLocalHandover(3))
	owner := queue.WithOwner(ctx)
	must(t, mx.Lock(owner))
	next := background(func() error { return mx.Lock(ctx) })
	must(t, mx.Do(owner, func(ctx context.Context) error { return mx.Lock(ctx) }))
	pending(t, "another's Lock", next)
	must(t, mx.Unlock())
	pending(t, "another's Lock", next)
	must(t, mx.Unlock())
	must(t, receive(t, "another's Lock", next))
	l := mx.Locker(nil)
	go l.Lock()
	must(t, mx.Unlock())
	zktest.Eventually(t, testserver.Patience, "the Locker to lock", mx.Held)
	l.Unlock()
	testserver.WaitChildren(t, dir, 0)
}

// When the lock is lost, the context of the work under it ends. Other processes get the lock at once, and
// other goroutines of this process when that work has ended.
func TestLocalDoLost(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(faultTimeout))
	mx := newMutex(t, m, dir, zklock.WithLocalHandover(3))
	var next <-chan error
	var grants atomic.Int64
	err := mx.Do(ctx, func(inside context.Context) error {
		next = background(func() error {
			err := mx.Lock(ctx)
			grants.Add(1)
			return err
		})
		expire(t, proxy, m)
		<-inside.Done()
		if !errors.Is(context.Cause(inside), session.ErrLost) {
			t.Errorf("cause %v", context.Cause(inside))
		}
		rival := newMutex(t, connect(t), dir)
		must(t, rival.Lock(ctx))
		must(t, rival.Unlock())
		if grants.Load() != 0 {
			t.Error("the next goroutine got the lock before Unlock")
		}
		return nil
	})
	wantErr(t, "Do", err, session.ErrLost)
	must(t, receive(t, "the next", next))
	must(t, mx.Unlock())
	testserver.WaitChildren(t, dir, 0)
}

// A request to give the lock up goes to the holder, and ends the turn.
func TestLocalRevoked(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	m := connect(t)
	mx := newMutex(t, m, dir, zklock.WithLocalHandover(5))
	l, err := mx.Acquire(ctx)
	must(t, err)
	waiting := make(chan *queue.Lease, 1)
	next := background(func() error {
		l, err := mx.Acquire(ctx)
		waiting <- l
		return err
	})
	all, err := mx.Contenders(ctx)
	must(t, err)
	if len(all) != 1 || all[0].Path != l.Path() {
		t.Errorf("contenders %+v", all)
	}
	must(t, zklock.Revoke(ctx, m, all[0].Path))
	receive(t, "the request", l.Revoked())
	must(t, l.Release(ctx))
	must(t, receive(t, "the next", next))
	n := <-waiting
	if path.Base(n.Path()) == path.Base(l.Path()) {
		t.Error("handed over although the lock had been asked for")
	}
	select {
	case <-n.Revoked():
		t.Error("the next hold is told")
	default:
	}
	must(t, n.Release(ctx))
	testserver.WaitChildren(t, dir, 0)
}

// A MultiLock takes part like a goroutine of the process.
func TestLocalMulti(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	m := connect(t)
	a := newMutex(t, m, dir+"/a", zklock.WithLocalHandover(5))
	both, err := zklock.Multi(newMutex(t, m, dir+"/b"), a)
	must(t, err)
	must(t, both.Lock(ctx))
	next := background(func() error { return a.Lock(ctx) })
	must(t, both.Unlock())
	must(t, receive(t, "the next", next))
	if got, err := both.TryLock(ctx); got || err != nil {
		t.Errorf("TryLock: %v, %v", got, err)
	}
	must(t, a.Unlock())
	testserver.WaitChildren(t, dir+"/a", 0)
	testserver.WaitChildren(t, dir+"/b", 0)
}

// takeOnce holds a mutex once, in one of three ways.
func takeOnce(ctx context.Context, mx *zklock.Mutex, how int, inside func(*queue.Lease)) error {
	switch how {
	case 0:
		l, err := mx.Acquire(ctx)
		if err != nil {
			return err
		}
		inside(l)
		return ignorePending(l.Release(ctx))
	case 1:
		got, err := mx.TryLock(ctx)
		if err == nil && !got {
			err = mx.Lock(ctx)
		}
		if err != nil {
			return err
		}
		inside(nil)
		return ignorePending(mx.Unlock())
	}
	return mx.Do(ctx, func(context.Context) error { inside(nil); return nil })
}

func ignorePending(err error) error {
	if errors.Is(err, queue.ErrReleasePending) {
		return nil
	}
	return err
}
