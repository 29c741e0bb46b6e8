package zklock_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

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
