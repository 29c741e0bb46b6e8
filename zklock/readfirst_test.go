package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// aTry is a lock whose tries are looked at, and the lock of another process that makes them busy.
type aTry struct {
	try interface {
		trier
		Lock(context.Context) error
		TryDo(context.Context, func(context.Context) error) (bool, error)
	}
	holder interface {
		Lock(context.Context) error
		Unlock() error
	}
}

// readsFirst are locks at a path that read first.
func readsFirst(t *testing.T, ours, theirs *session.Manager, dir string) map[string]aTry {
	t.Helper()
	rw := func(m *session.Manager, opts ...rwlock.Option) *rwlock.RWMutex {
		l, err := rwlock.New(m, dir+"/rw", opts...)
		must(t, err)
		return l
	}
	sem := func(m *session.Manager, opts ...semaphore.Option) *semaphore.Semaphore {
		s, err := semaphore.New(m, dir+"/sem", 1, opts...)
		must(t, err)
		return s
	}
	first := zklock.WithReadFirst()
	writer, reader := rw(theirs), rw(ours, rwlock.WithReadFirst())
	multi := newMulti(t, newMutex(t, ours, dir+"/multi/a", first), newMutex(t, ours, dir+"/multi/b", first))
	return map[string]aTry{
		"a mutex":            {newMutex(t, ours, dir+"/m", first), newMutex(t, theirs, dir+"/m")},
		"a latch":            {newMutex(t, ours, dir+"/latch", first, zklock.WithLeaderLatch()), newMutex(t, theirs, dir+"/latch", zklock.WithLeaderLatch())},
		"with hand-over":     {newMutex(t, ours, dir+"/h", first, zklock.WithLocalHandover(3)), newMutex(t, theirs, dir+"/h")},
		"with lazy release":  {newMutex(t, ours, dir+"/l", first, lazy), newMutex(t, theirs, dir+"/l")},
		"a writer":           {reader, writer},
		"a writer of reader": {reader, writer.Reader()},
		"a reader":           {reader.Reader(), writer},
		"a semaphore":        {sem(ours, semaphore.WithReadFirst()), sem(theirs)},
		"a MultiLock":        {multi, newMutex(t, theirs, dir+"/multi/b")},
	}
}

// writes are requests that change something.
var writes = zktest.Any(zktest.OpCreate, zktest.OpDelete, zktest.OpSetData, zktest.OpMulti, zktest.OpCreate2, zktest.OpCreateContainer)

// A busy try that reads first writes nothing, and asks the server for a sync and a listing of each directory. A free lock
// it gets, with any of the ways to try.
func TestReadFirst(t *testing.T) {
	dir := testserver.Path(t)
	proxy := testserver.Proxy(t)
	ours := testserver.Connect(t, proxy.Addr(), session.WithTimeout(time.Minute)) // no heartbeat in the meantime
	for name, l := range readsFirst(t, ours, connect(t), dir) {
		t.Run(name, func(t *testing.T) {
			ctx := patient(t)
			tries := map[string]func() (bool, error){
				"TryLock": func() (bool, error) { return l.try.TryLock(ctx) },
				"TryDo": func() (bool, error) {
					return l.try.TryDo(ctx, func(context.Context) error { return nil })
				},
			}
			if one, ok := l.try.(interface {
				TryAcquire(context.Context) (*queue.Lease, error)
			}); ok {
				tries["TryAcquire"] = func() (bool, error) {
					lease, err := one.TryAcquire(ctx)
					if err == nil {
						return true, lease.Release(ctx)
					}
					wantErr(t, "TryAcquire", err, queue.ErrBusy)
					return false, nil
				}
			}
			must(t, l.holder.Lock(ctx))
			_, err := l.try.TryLock(ctx) // a semaphore reads its limit once
			must(t, err)
			for what, try := range tries {
				proxy.ResetRequests()
				got, err := try()
				if got || err != nil {
					t.Errorf("%s of a busy lock: %v, %v", what, got, err)
				}
				lists := proxy.Count(zktest.On(zktest.OpGetChildren2, dir))
				syncs := proxy.Count(zktest.On(zktest.OpSync, dir))
				if n := proxy.Count(writes); n > 0 || lists == 0 || lists != syncs {
					t.Errorf("%s of a busy lock: %d writes, %d lists, %d syncs of %v", what, n, lists, syncs, proxy.Requests())
				}
			}
			lock := background(func() error { return l.try.Lock(ctx) }) // which waits
			zktest.Eventually(t, testserver.Patience, "a node", func() bool {
				return proxy.Count(zktest.Any(zktest.OpCreate, zktest.OpMulti)) > 0
			})
			must(t, l.holder.Unlock())
			must(t, receive(t, "Lock", lock))
			must(t, l.try.Unlock())
			for what, try := range tries {
				got, err := try()
				if !got || err != nil {
					t.Errorf("%s of a free lock: %v, %v", what, got, err)
				}
				if what == "TryLock" {
					must(t, l.try.Unlock())
				}
			}
		})
	}
}

// A busy try that reads first takes one round trip, and one that gets the lock one more than otherwise.
func TestReadFirstTakes(t *testing.T) {
	const roundTrip = 20 * time.Millisecond
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		for name, l := range readsFirst(t, connect(), connect(), "/locks") {
			_, err := l.try.TryLock(t.Context()) // makes the directories
			must(t, err)
			must(t, l.try.Unlock())
			must(t, l.holder.Lock(t.Context()))
			_, err = l.try.TryLock(t.Context()) // the connection is there, and a semaphore has read its limit
			must(t, err)
			server.Delay(roundTrip / 2)
			began := time.Now()
			got, err := l.try.TryLock(t.Context())
			if took := time.Since(began); got || err != nil || took != roundTrip {
				t.Errorf("%s: %v, %v after %v", name, got, err, took)
			}
			must(t, l.holder.Unlock())
			time.Sleep(time.Second)
			began = time.Now()
			got, err = l.try.TryLock(t.Context())
			if took := time.Since(began); !got || err != nil || took != 2*roundTrip {
				t.Errorf("%s, free: %v, %v after %v", name, got, err, took)
			}
			must(t, l.try.Unlock())
			server.Delay(0)
		}
	})
}

// A place that nobody uses does not make a lock busy, in another process or in this one. One that is used does, as soon as
// another contender waits for it.
func TestReadFirstKeptPlaces(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
		ours, theirs := connect(), connect()
		for name, m := range map[string]*session.Manager{"another process": theirs, "the same session": ours} {
			keeper := newMutex(t, m, lockPath, lazy)
			for range 2 {
				must(t, keeper.Lock(t.Context()))
				must(t, keeper.Unlock())
			}
			time.Sleep(time.Second)
			try := newMutex(t, ours, lockPath, zklock.WithReadFirst())
			if got, err := try.TryLock(t.Context()); !got || err != nil {
				t.Fatalf("kept by %s: %v, %v", name, got, err)
			}
			must(t, try.Unlock())
			time.Sleep(time.Minute)

			must(t, keeper.Lock(t.Context()))
			waiter := newMutex(t, theirs, lockPath, lazy)
			waits := background(func() error { return waiter.Lock(t.Context()) })
			time.Sleep(time.Second)
			began := time.Now()
			if got, err := try.TryLock(t.Context()); got || err != nil || time.Since(began) > 0 {
				t.Errorf("held by %s, and wanted: %v, %v after %v", name, got, err, time.Since(began))
			}
			must(t, keeper.Unlock())
			must(t, receive(t, "waiter", waits))
			must(t, waiter.Unlock())
			time.Sleep(time.Minute)
		}
	})
}

// The owner that holds a lock enters it again by a try that asks nobody.
func TestReadFirstReentrant(t *testing.T) {
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(time.Minute))
	mx := newMutex(t, m, testserver.Path(t), zklock.WithReadFirst())
	ctx := zklock.WithOwner(patient(t))
	for i := range 3 {
		got, err := mx.TryLock(ctx)
		if !got || err != nil {
			t.Fatalf("%v, %v", got, err)
		}
		if i == 0 {
			proxy.ResetRequests()
		}
	}
	if got, err := mx.TryLock(patient(t)); got || err != nil {
		t.Errorf("a stranger: %v, %v", got, err)
	}
	if all := proxy.Requests(); proxy.Count(writes) > 0 || proxy.Count(zktest.Any(zktest.OpSync)) != 1 {
		t.Errorf("requests: %v", all)
	}
	for range 3 {
		must(t, mx.Unlock())
	}
}

// A try that reads first finds a lock free that was released before, also over a server that lags behind.
func TestReadFirstBehindSync(t *testing.T) {
	dir := testserver.Path(t)
	server := zktest.Start(t)
	ours, theirs := testserver.Connect(t, server.Addr()), testserver.Connect(t, server.Addr())
	holder, try := newMutex(t, theirs, dir), newMutex(t, ours, dir, zklock.WithReadFirst())
	must(t, holder.Lock(patient(t)))
	must(t, server.Lag(testserver.Session(t, ours).ID(), 1))
	must(t, holder.Unlock())
	got, err := try.TryLock(patient(t))
	if !got || err != nil {
		t.Errorf("a lock that was released before: %v, %v", got, err)
	}
}

// If the connection breaks between the sync and the listing, or with them, both are sent again.
func TestReadFirstCut(t *testing.T) {
	for what, arm := range map[string]func(*zktest.Proxy, zktest.Match) *zktest.Fault{
		"before": (*zktest.Proxy).CutBefore, "after": (*zktest.Proxy).CutAfterCommit,
	} {
		for _, op := range []zktest.Op{zktest.OpSync, zktest.OpGetChildren2} {
			dir := testserver.Path(t)
			proxy := testserver.Proxy(t)
			try := newMutex(t, testserver.Connect(t, proxy.Addr()), dir, zklock.WithReadFirst())
			holder := newMutex(t, connect(t), dir)
			must(t, holder.Lock(patient(t)))
			proxy.ResetRequests()
			cut := arm(proxy, zktest.On(op, dir))
			got, err := try.TryLock(patient(t))
			if got || err != nil {
				t.Errorf("%s %v: %v, %v", what, op, got, err)
			}
			receive(t, "cut", cut.Hit())
			var last zktest.Request // the latest sync must be on the connection of the latest listing, and before it
			for _, r := range proxy.Requests() {
				switch {
				case r.Op == zktest.OpSync:
					last = r
				case r.Op == zktest.OpGetChildren2 && r.Conn != last.Conn:
					t.Errorf("%s %v: a listing without a sync: %v", what, op, proxy.Requests())
				}
			}
			if n := proxy.Count(zktest.On(zktest.OpSync, dir)); n < 2 || proxy.Count(writes) > 0 {
				t.Errorf("%s %v: %v", what, op, proxy.Requests())
			}
			must(t, holder.Unlock())
		}
	}
}
