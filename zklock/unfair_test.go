package zklock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Several processes take an unfair lock many times, in every way. The connections of two of them break all the
// time. There is one holder at a time.
func TestUnfairExclusion(t *testing.T) {
	const processes, goroutines, times = 5, 2, 30
	ctx, cancel := context.WithTimeout(context.Background(), 5*testserver.Patience)
	defer cancel()
	dir := testserver.Path(t)
	var p protected
	var r referee
	var g errgroup.Group
	for i := range processes {
		addr := testserver.Server(t).Addr(0)
		disturb := func() {}
		if i < 2 {
			proxy := testserver.Proxy(t)
			addr, disturb = proxy.Addr(), proxy.Disconnect
		}
		m := testserver.Connect(t, addr, session.WithTimeout(faultTimeout))
		mx := newMutex(t, m, dir, zklock.WithUnfair())
		for range goroutines {
			g.Go(func() error {
				for n := range times {
					if n%10 == 9 {
						disturb()
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
	if got := p.counter.Load(); got != processes*goroutines*times {
		t.Errorf("%d holds, want %d", got, processes*goroutines*times)
	}
	testserver.WaitChildren(t, dir, 0)
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

// A fair lock and an unfair lock at the same path exclude each other. The call that comes second gets a conflict,
// in either order, and leaves nothing behind.
func TestUnfairConflict(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	fair, unfair := newMutex(t, connect(t), dir), newMutex(t, connect(t), dir, zklock.WithUnfair())
	for _, c := range []struct {
		what          string
		first, second *zklock.Mutex
	}{
		{"fair first", fair, unfair},
		{"unfair first", unfair, fair},
	} {
		must(t, c.first.Lock(ctx))
		wantErr(t, c.what+": Lock", c.second.Lock(ctx), queue.ErrConflict)
		_, err := c.second.TryLock(ctx)
		wantErr(t, c.what+": TryLock", err, queue.ErrConflict)
		_, err = c.second.Contenders(ctx)
		wantErr(t, c.what+": Contenders", err, queue.ErrConflict)
		if !c.first.Held() || c.second.Held() {
			t.Errorf("%s: held %v, %v", c.what, c.first.Held(), c.second.Held())
		}
		testserver.WaitChildren(t, dir, 1)
		must(t, c.first.Unlock())
		testserver.WaitChildren(t, dir, 0)
		must(t, c.second.Lock(ctx)) // one after the other, both kinds may use the path
		must(t, c.second.Unlock())
	}
}

// Fair and unfair locks are taken at the same time, again and again. Neither kind is held beside the other.
func TestUnfairConflictRace(t *testing.T) {
	const each, times = 2, 150
	ctx, cancel := context.WithTimeout(context.Background(), 5*testserver.Patience)
	defer cancel()
	dir := testserver.Path(t)
	if _, err := testserver.Admin(t).Create(dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	var p protected
	var conflicts atomic.Int64
	var g errgroup.Group
	for i := range 2 * each {
		var opts []zklock.Option
		if i%2 == 0 {
			opts = append(opts, zklock.WithUnfair())
		}
		mx := newMutex(t, connect(t), dir, opts...)
		g.Go(func() error {
			for range times {
				switch err := mx.Lock(ctx); {
				case errors.Is(err, queue.ErrConflict):
					conflicts.Add(1)
				case err != nil:
					return err
				default:
					p.use(t, -1)
					if err := mx.Unlock(); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	must(t, g.Wait())
	t.Logf("%d holds, %d conflicts", p.counter.Load(), conflicts.Load())
	if p.counter.Load()+conflicts.Load() != 2*each*times {
		t.Error("a hold was lost")
	}
	testserver.WaitChildren(t, dir, 0)
}

// TestWakeUps counts the waiters that one release wakes, and the requests that they send before all but one of
// them wait again. For the fair lock the numbers do not depend on the number of waiters: the last two contenders ahead
// are watched, so a second waiter learns that the holder has gone, and sends nothing.
func TestWakeUps(t *testing.T) {
	const waiters = 20
	for _, c := range []struct {
		what   string
		opts   []zklock.Option
		woken  int64 // by one release
		rewait int64 // of the woken, those that do not get the lock
	}{
		{"fair", nil, 2, 1},
		{"unfair", []zklock.Option{zklock.WithUnfair()}, waiters, waiters - 1},
	} {
		t.Run(c.what, func(t *testing.T) {
			ctx := patient(t)
			dir := testserver.Path(t)
			holder := newMutex(t, connect(t), dir, c.opts...)
			must(t, holder.Lock(ctx))
			proxy := testserver.Proxy(t)
			var begun, woken atomic.Int64
			waits := session.WithTrace(session.Trace{
				Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
					begun.Add(1)
					return ctx, func(error) { woken.Add(1) }
				},
			})
			entered, leave := make(chan error, waiters), make(chan struct{})
			for range waiters {
				m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(faultTimeout), waits)
				mx := newMutex(t, m, dir, c.opts...)
				before := begun.Load()
				go func() {
					err := mx.Lock(ctx)
					if err == nil {
						defer func() { _ = mx.Unlock() }()
					}
					entered <- err
					<-leave
				}()
				zktest.Eventually(t, testserver.Patience, "the waiter to wait", func() bool { return begun.Load() > before })
			}
			begun.Store(0)
			woken.Store(0)
			proxy.ResetRequests()
			must(t, holder.Unlock())
			must(t, receive(t, "the next", entered))
			zktest.Eventually(t, testserver.Patience, "the others to wait again", func() bool { return begun.Load() >= c.rewait })
			requests := proxy.Count(func(r zktest.Request) bool { return r.Op != zktest.OpPing })
			t.Logf("%d wait: a release wakes %d of them, which send %d requests", waiters, woken.Load(), requests)
			if woken.Load() != c.woken {
				t.Errorf("%d were woken, want %d", woken.Load(), c.woken)
			}
			close(leave)
			for range waiters - 1 {
				must(t, receive(t, "the next", entered))
			}
			testserver.WaitChildren(t, dir, 0)
		})
	}
}

// Lock and Unlock of an unfair mutex, with the data given.
func TestUnfairLock(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	mx := newMutex(t, connect(t), dir, zklock.WithUnfair(), zklock.WithData([]byte("mine")))
	must(t, mx.Lock(ctx))
	all, err := mx.Contenders(ctx)
	must(t, err)
	if len(all) != 1 || string(all[0].Data) != "mine" || !all[0].Holder {
		t.Errorf("contenders %+v", all)
	}
	next := background(func() error { return mx.Lock(ctx) })
	must(t, mx.Unlock())
	must(t, receive(t, "the next Lock", next))
	testserver.Delete(t, dir, testserver.Children(t, dir)[0])
	waitLost(t, mx)
	wantErr(t, "Unlock", mx.Unlock(), session.ErrLost)
	testserver.WaitChildren(t, dir, 0)
}
