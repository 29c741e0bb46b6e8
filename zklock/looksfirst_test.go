package zklock_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
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

	dirs   int // which a busy try lists
	limits int // which it reads
	free   int // round trips of a try that gets the lock
}

// onlyKey is a key of a Keyed as a lock.
type onlyKey struct {
	*zklock.Keyed
	key string
}

func (k onlyKey) Lock(ctx context.Context) error            { return k.Keyed.Lock(ctx, k.key) }
func (k onlyKey) TryLock(ctx context.Context) (bool, error) { return k.Keyed.TryLock(ctx, k.key) }
func (k onlyKey) Unlock() error                             { return k.Keyed.Unlock(k.key) }
func (k onlyKey) TryDo(ctx context.Context, f func(context.Context) error) (bool, error) {
	return k.Keyed.TryDo(ctx, k.key, f)
}

func (k onlyKey) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return k.Keyed.TryAcquire(ctx, k.key)
}

// triedLocks are locks at a path, of all kinds.
func triedLocks(t *testing.T, ours, theirs *session.Manager, dir string) map[string]aTry {
	t.Helper()
	mutexes := func(name string, opts ...zklock.Option) aTry {
		return aTry{newMutex(t, ours, dir+"/"+name, opts...), newMutex(t, theirs, dir+"/"+name), 1, 0, 2}
	}
	key := func(m *session.Manager) onlyKey {
		k, err := zklock.NewKeyed(m, dir+"/keys")
		must(t, err)
		return onlyKey{k, "a"}
	}
	rw := func(m *session.Manager, name string, opts ...rwlock.Option) *rwlock.RWMutex {
		l, err := rwlock.New(m, dir+"/"+name, opts...)
		must(t, err)
		return l
	}
	sem := func(m *session.Manager, name string, opts ...semaphore.Option) *semaphore.Semaphore {
		s, err := semaphore.New(m, dir+"/"+name, 1, opts...)
		must(t, err)
		return s
	}
	curator := semaphore.WithCuratorLayout()
	lazyReaders := rwlock.WithLazyRelease(time.Minute)
	writer, reader := rw(theirs, "rw"), rw(ours, "rw")
	return map[string]aTry{
		"a mutex":            mutexes("m"),
		"with hand-over":     mutexes("h", zklock.WithLocalHandover(3)),
		"with lazy release":  mutexes("l", lazy),
		"a writer":           {reader, writer, 1, 0, 2},
		"a writer of reader": {reader, writer.Reader(), 1, 0, 2},
		"a reader":           {reader.Reader(), writer, 1, 0, 2},
		"lazy readers":       {rw(ours, "lazy", lazyReaders).Reader(), rw(theirs, "lazy"), 1, 0, 2},
		"a key":              {key(ours), key(theirs), 1, 0, 2},
		"a semaphore":        {sem(ours, "sem"), sem(theirs, "sem"), 1, 1, 2},
		// Its gate and its leases are two places, taken one after the other, and the gate is left before the try ends.
		"Curator's layout": {sem(ours, "curator", curator), sem(theirs, "curator", curator), 2, 0, 4},
		// Goroutines share the place of the last. So each is taken by its own TryLock, in order, which looks again.
		"a MultiLock": {
			newMulti(t, newMutex(t, ours, dir+"/multi/a"), sem(ours, "multi/b"), newMutex(t, ours, dir+"/multi/c", lazy)),
			newMutex(t, theirs, dir+"/multi/c"), 3, 1, 7,
		},
	}
}

// A busy try of any kind writes nothing, and takes one round trip. It asks the server for a sync and a listing of each
// directory, and for the limit of a semaphore, and for nothing else. A free lock it gets, with any of the ways to try: it
// enters after the look.
func TestTryLooksFirst(t *testing.T) {
	const roundTrip = 20 * time.Millisecond
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		ctx, m := t.Context(), connect()
		s := testserver.Session(t, m)
		for name, l := range triedLocks(t, m, connect(), "/locks") {
			tries := map[string]func() (bool, error){
				"TryLock": func() (bool, error) { return l.try.TryLock(ctx) },
				"TryDo":   func() (bool, error) { return l.try.TryDo(ctx, nothing) },
			}
			if one, ok := l.try.(interface {
				TryAcquire(context.Context) (*queue.Lease, error)
			}); ok {
				tries["TryAcquire"] = func() (bool, error) {
					lease, err := one.TryAcquire(ctx)
					if err == nil {
						return true, lease.Release(ctx)
					}
					wantErr(t, name+": TryAcquire", err, queue.ErrBusy)
					return false, nil
				}
			}
			_, err := l.try.TryLock(ctx) // makes the directories
			must(t, err)
			must(t, l.try.Unlock())
			time.Sleep(time.Second)
			must(t, l.holder.Lock(ctx))
			time.Sleep(time.Second)
			server.Delay(roundTrip / 2)
			want := map[zktest.Op]int{zktest.OpSync: l.dirs, zktest.OpGetChildren2: l.dirs}
			if l.limits > 0 {
				want[zktest.OpGetData] = l.limits
			}
			for what, try := range tries {
				server.ResetRequests()
				began := time.Now()
				got, err := try()
				if took := time.Since(began); got || err != nil || took != roundTrip {
					t.Errorf("%s of %s that is busy: %v, %v after %v", what, name, got, err, took)
				}
				sent := make(map[zktest.Op]int)
				for _, r := range server.Requests() {
					if r.Session == s.ID() && r.Xid > 0 && r.Path != "/" { // heartbeats are pings, and requests at the root
						sent[r.Op]++
					}
				}
				if !maps.Equal(sent, want) {
					t.Errorf("%s of %s that is busy: %v, want %v", what, name, sent, want)
				}
			}
			must(t, l.holder.Unlock())
			time.Sleep(time.Second)
			began := time.Now()
			got, err := l.try.TryLock(ctx)
			if took := time.Since(began); !got || err != nil || took != time.Duration(l.free)*roundTrip {
				t.Errorf("%s, free: %v, %v after %v", name, got, err, took)
			}
			must(t, l.try.Unlock())
			server.Delay(0)
			for what, try := range tries {
				time.Sleep(time.Second)
				if got, err := try(); !got || err != nil {
					t.Errorf("%s of %s that is free: %v, %v", what, name, got, err)
				}
				if what == "TryLock" {
					must(t, l.try.Unlock())
				}
			}
		}
	})
}

// writes are requests that change something.
var writes = zktest.Any(zktest.OpCreate, zktest.OpDelete, zktest.OpSetData, zktest.OpMulti, zktest.OpCreate2, zktest.OpCreateContainer)

// A MultiLock looks at all of its locks in one round trip, also at those that it takes by themselves. If the last one
// is busy, it has written nothing, and a place that this process keeps stays.
func TestTryOfSeveralLooksFirst(t *testing.T) {
	const roundTrip = 20 * time.Millisecond
	semaphores := func(t *testing.T, m *session.Manager, path string) *semaphore.Semaphore {
		s, err := semaphore.New(m, path, 1, semaphore.WithCuratorLayout())
		must(t, err)
		return s
	}
	for what, locks := range map[string]func(t *testing.T, m, other *session.Manager) (locks []zklock.ContextLocker, busy func()){
		"readers that share a place": func(t *testing.T, m, _ *session.Manager) ([]zklock.ContextLocker, func()) {
			return []zklock.ContextLocker{lazyRW(t, m, "/a").Reader()}, nil
		},
		"a place that another object keeps": func(t *testing.T, m, _ *session.Manager) ([]zklock.ContextLocker, func()) {
			kept := newMutex(t, m, "/a", lazy)
			must(t, kept.Lock(t.Context()))
			must(t, kept.Unlock())
			return []zklock.ContextLocker{newMutex(t, m, "/a")}, nil
		},
		"seventy more": func(t *testing.T, m, _ *session.Manager) (all []zklock.ContextLocker, _ func()) {
			for i := range 70 {
				all = append(all, newMutex(t, m, fmt.Sprintf("/a%02d", i)))
			}
			return all, nil
		},
		"Curator's layout, without a lease": func(t *testing.T, m, other *session.Manager) ([]zklock.ContextLocker, func()) {
			return []zklock.ContextLocker{newMutex(t, m, "/a"), semaphores(t, m, "/b")},
				func() { must(t, semaphores(t, other, "/b").Lock(t.Context())) }
		},
		"Curator's layout, behind the gate": func(t *testing.T, m, other *session.Manager) ([]zklock.ContextLocker, func()) {
			return []zklock.ContextLocker{newMutex(t, m, "/a"), semaphores(t, m, "/b")},
				func() { must(t, newMutex(t, other, "/b/locks").Lock(t.Context())) }
		},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
				var sent atomic.Int64
				m := connect(session.WithTrace(session.Trace{
					Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
						if r.Op != "sync" && r.Op != "getChildren" {
							sent.Add(1)
						}
						return ctx, func(error) {}
					},
				}))
				other := connect()
				some, makeBusy := locks(t, m, other)
				if makeBusy == nil {
					makeBusy = func() { must(t, newMutex(t, other, "/z").Lock(t.Context())) }
				}
				several := newMulti(t, append(some, newMutex(t, m, "/z"))...)
				makeBusy()
				time.Sleep(time.Second)
				server.Delay(roundTrip / 2)
				sent.Store(0)
				began := time.Now()
				got, err := several.TryLock(t.Context())
				must(t, err)
				took := time.Since(began)
				if what == "seventy more" { // more than a connection has in flight
					took = min(took, roundTrip)
				}
				if got || took != roundTrip || sent.Load() > 0 {
					t.Errorf("%v after %v, and %d requests but for the look", got, took, sent.Load())
				}
				server.Delay(0)
			})
		})
	}
}

// A try finds a lock free that was released before, also over a server that lags behind.
func TestTryBehindSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t, zktest.Servers(3))
		connect := func(at string) *session.Manager {
			return testserver.Connect(t, at, session.WithDialer(server.Dialer()))
		}
		holder, try := newMutex(t, connect("zk2"), "/l"), newMutex(t, connect("zk0"), "/l")
		must(t, holder.Lock(t.Context()))
		testserver.Switch(server).DelayLink(2, 0, time.Second) // from the leader
		must(t, holder.Unlock())
		got, err := try.TryLock(t.Context())
		if !got || err != nil {
			t.Errorf("a lock that was released before: %v, %v", got, err)
		}
	})
}

// A try that may not list the contenders fails, and has written nothing. Where there is no directory, nobody contends.
func TestTryMayNotLook(t *testing.T) {
	dir := testserver.Path(t)
	admin := testserver.Admin(t)
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr())
	try := newMutex(t, m, dir+"/a")
	got, err := try.TryLock(patient(t))
	must(t, err)
	if !got {
		t.Error("busy where there is no directory")
	}
	must(t, try.Unlock())
	_, err = admin.Create(dir+"/b", nil, 0, zk.WorldACL(zk.PermAll&^zk.PermRead))
	must(t, err)
	proxy.ResetRequests()
	got, err = newMutex(t, m, dir+"/b").TryLock(patient(t))
	wantErr(t, "TryLock", err, zk.ErrNoAuth)
	if got || proxy.Count(writes) > 0 {
		t.Errorf("%v, and sent %v", got, proxy.Requests())
	}
}

// Processes that only try take turns at a free mutex. If each made a node first, they would keep each other out nearly
// always: one of 12,410 tries got it in 8 s.
func TestTryStorm(t *testing.T) {
	const stormers, every = 100, 50 * time.Millisecond
	lasts := longtest.Pick(2*time.Second, 8*time.Second)
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		var won, holders atomic.Int64
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i := range stormers {
			mx := newMutex(t, connect(), lockPath)
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			all.Go(func() {
				<-begin
				for end := time.Now().Add(lasts); time.Now().Before(end); {
					time.Sleep(time.Duration(rng.Int64N(int64(2 * every))))
					ok, err := mx.TryLock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if !ok {
						continue
					}
					won.Add(1)
					if holders.Add(1) > 1 {
						t.Error("two holders")
					}
					time.Sleep(time.Millisecond)
					holders.Add(-1)
					if err := mx.Unlock(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		server.Delay(2 * time.Millisecond)
		close(begin)
		all.Wait()
		if got := won.Load(); float64(got) < 50*lasts.Seconds() {
			t.Errorf("%d tries got a free lock", got)
		}
	})
}

// If the connection breaks between the sync and the listing, or with them, both are sent again.
func TestTryCut(t *testing.T) {
	for what, arm := range map[string]func(*zktest.Proxy, zktest.Match) *zktest.Fault{
		"before": (*zktest.Proxy).CutBefore, "after": (*zktest.Proxy).CutAfterCommit,
	} {
		for _, op := range []zktest.Op{zktest.OpSync, zktest.OpGetChildren2} {
			dir := testserver.Path(t)
			proxy := testserver.Proxy(t)
			try := newMutex(t, testserver.Connect(t, proxy.Addr()), dir)
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
