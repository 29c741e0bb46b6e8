package zklock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"path"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

func newMulti(tb testing.TB, locks ...zklock.ContextLocker) *zklock.MultiLock {
	tb.Helper()
	m, err := zklock.Multi(locks...)
	must(tb, err)
	return m
}

// dirs returns the paths of n directories that are never removed, in order.
func dirs(tb testing.TB, n int) []string {
	tb.Helper()
	base := testserver.Path(tb)
	var out []string
	for i := range n {
		dir := base + "-" + string(rune('a'+i))
		_, err := testserver.Admin(tb).Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
		must(tb, err)
		out = append(out, dir)
	}
	return out
}

// ownType is a lock of a user's, which embeds one of this module.
type ownType struct{ *zklock.Mutex }

// Multi returns an error for bad arguments, before any I/O: the servers do not exist.
func TestMultiInvalid(t *testing.T) {
	open := func(servers string) *session.Manager {
		m, err := session.Open(servers)
		must(t, err)
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	const nobody = "192.0.2.1:2181"
	m, same, app := open(nobody), open(nobody), open(nobody+"/app")
	mutex := func(m *session.Manager, path string) *zklock.Mutex { return newMutex(t, m, path) }
	rw, err := rwlock.New(m, "/b")
	must(t, err)
	sem, err := semaphore.New(m, "/c", 2)
	must(t, err)
	curator, err := semaphore.New(m, "/d", 2, semaphore.WithCuratorLayout())
	must(t, err)
	for _, c := range []struct {
		what  string
		locks []zklock.ContextLocker
		ok    bool
	}{
		{"none", nil, false},
		{"nil", []zklock.ContextLocker{mutex(m, "/a"), nil}, false},
		{"a nil pointer", []zklock.ContextLocker{mutex(m, "/a"), (*zklock.Mutex)(nil)}, false},
		{"a zero value", []zklock.ContextLocker{mutex(m, "/a"), new(zklock.Mutex)}, false},
		{"a zero Reader", []zklock.ContextLocker{mutex(m, "/a"), rwlock.Reader{}}, false},
		{"a type that embeds a lock", []zklock.ContextLocker{mutex(m, "/a"), ownType{mutex(m, "/b")}}, false},
		{"a type of a user", []zklock.ContextLocker{mutex(m, "/a"), foreign{mutex(m, "/b")}}, false},
		{"twice", []zklock.ContextLocker{mutex(m, "/a"), mutex(m, "/b"), mutex(m, "/a")}, false},
		{"a writer and its reader", []zklock.ContextLocker{rw, mutex(m, "/a"), rw.Reader()}, false},
		{"two kinds at one path", []zklock.ContextLocker{sem, mutex(m, "/a"), mutex(m, "/c")}, false},
		{"another manager", []zklock.ContextLocker{mutex(m, "/a"), mutex(same, "/b")}, false},
		{"another manager with a chroot", []zklock.ContextLocker{mutex(m, "/a"), mutex(app, "/a")}, false},
		{"one", []zklock.ContextLocker{mutex(m, "/a")}, true},
		{"all kinds", []zklock.ContextLocker{curator, sem, rw, mutex(m, "/a")}, true},
		{"a reader", []zklock.ContextLocker{rw.Reader(), mutex(m, "/a")}, true},
	} {
		l, err := zklock.Multi(c.locks...)
		if c.ok {
			must(t, err)
			continue
		}
		wantErr(t, c.what, err, session.ErrInvalid)
		if l != nil {
			t.Errorf("%s: a lock beside an error", c.what)
		}
	}
}

// Several processes want three locks each, in orders that differ and change. None of them waits for ever, and
// each lock has one holder at a time.
func TestMultiTakenInOneOrder(t *testing.T) {
	const processes, times = 4, 12
	paths := dirs(t, 3)
	var inside [3]protected
	var g errgroup.Group
	ctx := patient(t)
	for i := range processes {
		m := connect(t, session.WithTimeout(faultTimeout))
		g.Go(func() error {
			for range times {
				var locks []zklock.ContextLocker
				for _, n := range rand.Perm(len(paths)) {
					mx, err := zklock.New(m, paths[n])
					if err != nil {
						return err
					}
					locks = append(locks, mx)
				}
				all, err := zklock.Multi(locks[:2+i%2]...)
				if err != nil {
					return err
				}
				l, err := all.Acquire(ctx)
				if err != nil {
					return err
				}
				for j, one := range l.Leases() {
					if path.Dir(one.Path()) != locks[j].Path() {
						t.Errorf("lease %d is of %s, want %s", j, one.Path(), locks[j].Path())
					}
					inside[slices.Index(paths, locks[j].Path())].use(t, -1)
				}
				if err := l.Release(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(t, g.Wait())
	for _, dir := range paths {
		testserver.WaitChildren(t, dir, 0)
	}
}

// If the last of the locks cannot be taken, the others are given up, the last first, and nothing is left. A try holds none of
// them before it knows that it may go everywhere, so no hook is told of a release.
func TestMultiRollback(t *testing.T) {
	ctx := patient(t)
	for _, c := range []struct {
		what string
		call func(ctx context.Context, m *zklock.MultiLock) error
		want error
	}{
		{"Lock is cancelled", func(ctx context.Context, m *zklock.MultiLock) error { return m.Lock(ctx) }, context.Canceled},
		{"TryLock", func(ctx context.Context, m *zklock.MultiLock) error {
			if got, err := m.TryLock(ctx); got || err != nil {
				t.Errorf("TryLock: %v, %v", got, err)
			}
			return queue.ErrBusy
		}, queue.ErrBusy},
		{"TryAcquire", func(ctx context.Context, m *zklock.MultiLock) error {
			_, err := m.TryAcquire(ctx)
			return err
		}, queue.ErrBusy},
		{"Do is cancelled", func(ctx context.Context, m *zklock.MultiLock) error {
			return m.Do(ctx, func(context.Context) error { t.Error("inside"); return nil })
		}, context.Canceled},
	} {
		t.Run(c.what, func(t *testing.T) {
			paths := dirs(t, 3)
			var mu sync.Mutex
			var released []string
			waits := make(chan struct{}, 1)
			m := connect(t, session.WithTrace(session.Trace{
				Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
					waits <- struct{}{}
					return ctx, nil
				},
				Release: func(ctx, _ context.Context, h session.HoldInfo) (context.Context, func(error)) {
					mu.Lock()
					defer mu.Unlock()
					released = append(released, h.Path)
					return ctx, nil
				},
			}))
			holder := newMutex(t, connect(t), paths[2], lazy) // a try takes that for a place that may leave, and enters
			must(t, holder.Lock(ctx))
			all := newMulti(t, newMutex(t, m, paths[2]), newMutex(t, m, paths[0]), newMutex(t, m, paths[1]))
			inside, cancel := context.WithCancel(ctx)
			defer cancel()
			done := background(func() error { return c.call(inside, all) })
			if c.want == context.Canceled {
				receive(t, "the wait for the last lock", waits)
				testserver.WaitChildren(t, paths[2], 2)
				pending(t, c.what, done)
				cancel()
			}
			wantErr(t, c.what, receive(t, c.what, done), c.want)
			if all.Held() {
				t.Error("held")
			}
			testserver.WaitChildren(t, paths[0], 0)
			testserver.WaitChildren(t, paths[1], 0)
			testserver.WaitChildren(t, paths[2], 1)
			mu.Lock()
			defer mu.Unlock()
			want := []string{paths[1], paths[0]}
			if c.want == queue.ErrBusy {
				want = nil
			}
			if !slices.Equal(released, want) {
				t.Errorf("released %v, want %v", released, want)
			}
			must(t, holder.Unlock())
		})
	}
}

// When the first or the last of the locks is lost, the MultiLock is lost at once. The other locks are kept
// until Release, for the work that may still be going on.
func TestMultiLostAsAWhole(t *testing.T) {
	for what, lost := range map[string]int{"the first": 0, "the last": 2} {
		t.Run(what, func(t *testing.T) {
			ctx := patient(t)
			paths := dirs(t, 3)
			m := connect(t)
			all := newMulti(t, newMutex(t, m, paths[0]), newMutex(t, m, paths[1]), newMutex(t, m, paths[2]))
			l, err := all.Acquire(ctx)
			must(t, err)
			work, cancel := l.Context(ctx)
			defer cancel()
			testserver.Delete(t, l.Leases()[lost].Path())
			receive(t, "Done", l.Done())
			receive(t, "the work's context", work.Done())
			wantErr(t, "Err", l.Err(), session.ErrLost)
			wantErr(t, "the cause", context.Cause(work), session.ErrLost)
			if err := l.Leases()[1].Err(); err != nil {
				t.Errorf("the one between: %v", err)
			}
			testserver.WaitChildren(t, paths[1], 1)
			wantErr(t, "Release", l.Release(ctx), session.ErrLost)
			for _, dir := range paths {
				testserver.WaitChildren(t, dir, 0)
			}
			wantErr(t, "Err after Release", l.Err(), session.ErrLost)
		})
	}
}

// The same through Lock. Held and Done show the loss of one lock, Do reports it, and Unlock frees the others
// and lets the next Lock of the same MultiLock return.
func TestMultiLockLost(t *testing.T) {
	ctx := patient(t)
	paths := dirs(t, 2)
	m := connect(t)
	all := newMulti(t, newMutex(t, m, paths[1]), newMutex(t, m, paths[0]))
	receive(t, "Done of what nobody holds", all.Done())
	must(t, all.Lock(ctx))
	done := all.Done()
	testserver.Delete(t, paths[0], testserver.Children(t, paths[0])[0])
	receive(t, "Done", done)
	if all.Held() {
		t.Error("held, with one of the locks lost")
	}
	again := background(func() error { return all.Lock(ctx) })
	rival := newMutex(t, connect(t), paths[0])
	must(t, rival.Lock(ctx))
	must(t, rival.Unlock())
	pending(t, "Lock before Unlock", again)
	wantErr(t, "Unlock", all.Unlock(), session.ErrLost)
	must(t, receive(t, "Lock", again))
	if !all.Held() {
		t.Error("not held")
	}
	must(t, all.Unlock())
	wantErr(t, "Unlock again", all.Unlock(), zklock.ErrNotHeld)
	err := all.Do(ctx, func(ctx context.Context) error {
		testserver.Delete(t, paths[1], testserver.Children(t, paths[1])[0])
		receive(t, "the end of Do's context", ctx.Done())
		return context.Cause(ctx)
	})
	wantErr(t, "Do", err, session.ErrLost)
	l := all.Locker(nil)
	l.Lock()
	if !all.Held() {
		t.Error("not held through the Locker")
	}
	l.Unlock()
	for _, dir := range paths {
		testserver.WaitChildren(t, dir, 0)
	}
}

// Do reports a loss also if the release of another lock is not confirmed yet, which Do does not report.
func TestMultiDoLostAndPending(t *testing.T) {
	longtest.Only(t)
	ctx := patient(t)
	paths := dirs(t, 2)
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(faultTimeout))
	all := newMulti(t, newMutex(t, m, paths[0]), newMutex(t, m, paths[1]))
	err := all.Do(ctx, func(ctx context.Context) error {
		testserver.Delete(t, paths[0], testserver.Children(t, paths[0])[0])
		receive(t, "the end of Do's context", ctx.Done())
		proxy.Refuse(true)
		proxy.Disconnect()
		return nil
	})
	wantErr(t, "Do", err, session.ErrLost)
	proxy.Heal()
	testserver.WaitChildren(t, paths[1], 0)
}

// If a server refuses a release when the locks are given up, Lock returns its error in place of the one that caused that.
// TryLock does not return false and nil if it leaves a node behind.
func TestMultiErrorsJoined(t *testing.T) {
	ctx := patient(t)
	paths := dirs(t, 2)
	admin := testserver.Admin(t)
	_, err := admin.SetACL(paths[0], zk.WorldACL(zk.PermAll&^zk.PermDelete), -1)
	must(t, err)
	m := connect(t)
	all := newMulti(t, newMutex(t, m, paths[0]), newMutex(t, m, paths[1]))
	allow := func() { // so that there is only one refused node at a time
		t.Helper()
		_, err := admin.SetACL(paths[0], zk.WorldACL(zk.PermAll), -1)
		must(t, err)
		for _, name := range testserver.Children(t, paths[0]) {
			testserver.Delete(t, paths[0], name)
		}
		_, err = admin.SetACL(paths[0], zk.WorldACL(zk.PermAll&^zk.PermDelete), -1)
		must(t, err)
	}
	must(t, all.Lock(ctx))
	wantErr(t, "Unlock", all.Unlock(), zk.ErrNoAuth)
	allow()

	holder := newMutex(t, connect(t), paths[1], lazy) // a try takes that for a place that may leave, and enters
	must(t, holder.Lock(ctx))
	got, err := all.TryLock(ctx)
	wantErr(t, "TryLock", err, zk.ErrNoAuth)
	if got {
		t.Error("TryLock behind a holder")
	}
	must(t, holder.Unlock())
	allow()

	_, err = admin.Create(paths[1]+"/lease-0000000000", nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	wantErr(t, "Lock", all.Lock(ctx), zk.ErrNoAuth)
}

// Of several calls of Release one gives up all of the locks, and the others say that the whole was released.
func TestMultiReleasedOnce(t *testing.T) {
	ctx := patient(t)
	paths := dirs(t, 2)
	m := connect(t)
	l, err := newMulti(t, newMutex(t, m, paths[0]), newMutex(t, m, paths[1])).Acquire(ctx)
	must(t, err)
	must(t, l.Release(ctx))
	err = l.Release(ctx)
	wantErr(t, "the second Release", err, queue.ErrReleased)
	var of *queue.OpError
	if want := paths[0] + ", " + paths[1]; !errors.As(err, &of) || of.Path != want {
		t.Errorf("the second Release: %v, want one about %s", err, want)
	}
}

// An owner enters its hold again.
func TestMultiOwner(t *testing.T) {
	ctx := queue.WithOwner(patient(t))
	paths := dirs(t, 2)
	m := connect(t)
	all := newMulti(t, newMutex(t, m, paths[0]), newMutex(t, m, paths[1]))
	must(t, all.Lock(ctx))
	must(t, all.Lock(ctx))
	must(t, all.Unlock())
	if !all.Held() {
		t.Error("not held after one of two Unlocks")
	}
	must(t, all.Unlock())
	for _, dir := range paths {
		testserver.WaitChildren(t, dir, 0)
	}
}

// An owner that holds one of the locks by itself would wait for its own Unlock. All calls fail at once, and send nothing.
func TestMultiOfOneThatItsOwnerHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		var sent atomic.Int64
		m := connect(session.WithTrace(session.Trace{
			Request: func(ctx context.Context, _ session.RequestInfo) (context.Context, func(error)) {
				sent.Add(1)
				return ctx, nil
			},
		}))
		mx := newMutex(t, m, "/locks/b")
		rw, err := rwlock.New(m, "/locks/c")
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it is an error to wait
		defer cancel()
		owner := queue.WithOwner(ctx)
		first := newMutex(t, m, "/locks/a")
		for what, c := range map[string]struct {
			held slotted
			all  *zklock.MultiLock
		}{
			"a mutex":              {mx, newMulti(t, first, mx)},
			"a writer":             {rw, newMulti(t, first, rw)},
			"a reader":             {rw.Reader(), newMulti(t, first, rw.Reader())},
			"a reader of a writer": {rw, newMulti(t, first, rw.Reader())},
			"a writer of a reader": {rw.Reader(), newMulti(t, first, rw)},
		} {
			must(t, c.held.Lock(owner))
			before := sent.Load()
			_, err := c.all.TryLock(owner)
			wantErr(t, what+": TryLock", err, session.ErrInvalid)
			_, err = c.all.Acquire(owner)
			wantErr(t, what+": Acquire", err, session.ErrInvalid)
			_, err = c.all.TryAcquire(owner)
			wantErr(t, what+": TryAcquire", err, session.ErrInvalid)
			wantErr(t, what+": Do", c.all.Do(owner, func(context.Context) error { return nil }), session.ErrInvalid)
			wantErr(t, what+": Lock", c.all.Lock(owner), session.ErrInvalid)
			if n := sent.Load() - before; n != 0 {
				t.Errorf("%s: %d requests", what, n)
			}
			must(t, c.held.Unlock())
			must(t, c.all.Lock(owner))
			must(t, c.all.Lock(owner)) // as a whole
			must(t, errors.Join(c.all.Unlock(), c.all.Unlock()))
		}
		must(t, mx.Lock(owner))
		must(t, server.Expire(t.Context(), testserver.Session(t, m).ID()))
		<-mx.Done()
		wantErr(t, "Lock beside a lost hold", newMulti(t, first, mx).Lock(owner), session.ErrLost)
	})
}

// Any goroutine can look at the context with which the locks are taken. It ends when all locks are taken. The
// race detector decides this test.
func TestMultiContextIsLookedAt(t *testing.T) {
	var all sync.WaitGroup
	m := connect(t, session.WithTrace(session.Trace{
		Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			all.Go(func() {
				for ctx.Err() == nil {
					runtime.Gosched()
				}
			})
			return ctx, nil
		},
	}))
	var locks []zklock.ContextLocker
	for _, dir := range dirs(t, 3) {
		locks = append(locks, newMutex(t, m, dir))
	}
	must(t, newMulti(t, locks...).Do(patient(t), func(ctx context.Context) error {
		all.Wait()
		return ctx.Err()
	}))
}

// foreign is a lock that has the methods of a ContextLocker and was not made by this module.
type foreign struct{ l *zklock.Mutex }

func (f foreign) Path() string                                         { return f.l.Path() }
func (f foreign) Acquire(ctx context.Context) (*queue.Lease, error)    { return f.l.Acquire(ctx) }
func (f foreign) TryAcquire(ctx context.Context) (*queue.Lease, error) { return f.l.TryAcquire(ctx) }
