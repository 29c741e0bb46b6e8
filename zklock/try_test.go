package zklock_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

var lazyRW = rwlock.WithLazyRelease(time.Minute)

// A busy try of any kind takes one round trip. It asks the server for a sync and a listing of each directory, and for the
// limit of a semaphore, and for nothing else. It enters after the look.
func TestTryLooksFirst(t *testing.T) {
	run(t, func(w *world) {
		ours, theirs := w.Connect(), w.Connect()
		mutex := func(path string, opts ...zklock.Option) *zklock.Mutex { return newMutex(t, ours, path, opts...) }
		their := func(path string) *zklock.Mutex { return newMutex(t, theirs, path) }
		curator := semaphore.WithCuratorLayout()
		for name, l := range map[string]struct {
			try, holder  locker
			dirs, limits int // which a busy try lists, and reads
			free         int // round trips of a try that gets the lock
		}{
			"a mutex":           {mutex("/m"), their("/m"), 1, 0, 2},
			"with hand-over":    {mutex("/h", zklock.WithLocalHandover(3)), their("/h"), 1, 0, 2},
			"with lazy release": {mutex("/l", lazy), their("/l"), 1, 0, 2},
			"a writer":          {newRW(t, ours, "/w"), newRW(t, theirs, "/w").Reader(), 1, 0, 2},
			"a reader":          {newRW(t, ours, "/r").Reader(), newRW(t, theirs, "/r"), 1, 0, 2},
			"lazy readers":      {newRW(t, ours, "/lr", lazyRW).Reader(), newRW(t, theirs, "/lr"), 1, 0, 2},
			"a key":             {oneKey{newKeyed(t, ours, "/k")}, oneKey{newKeyed(t, theirs, "/k")}, 1, 0, 2},
			"a semaphore":       {newSem(t, ours, "/s", 1), newSem(t, theirs, "/s", 1), 1, 1, 2},
			// Its gate and its leases are two places, taken one after the other, and the gate is left before the try ends.
			"Curator's layout": {newSem(t, ours, "/c", 1, curator), newSem(t, theirs, "/c", 1, curator), 2, 0, 4},
			// Goroutines share the place of the last. So each is taken by its own TryLock, in order, which looks again.
			"a MultiLock": {newMulti(t, mutex("/a1"), newSem(t, ours, "/a2", 1), mutex("/a3", lazy)), their("/a3"), 3, 1, 7},
		} {
			try := func() bool {
				got, err := l.try.TryLock(w.Context())
				w.Must(err)
				return got
			}
			if !try() { // makes the directories
				t.Fatalf("%s: the first try is busy", name)
			}
			w.Must(l.try.Unlock())
			w.Pass(time.Second)
			w.Must(l.holder.Lock(w.Context()))
			w.Pass(time.Second)
			w.Delay(roundTrip / 2)
			w.ResetRequests()
			if took := bubble.Took(func() {
				if try() {
					t.Errorf("%s: got a lock that is held", name)
				}
			}); took != roundTrip {
				t.Errorf("%s: busy after %v", name, took)
			}
			sent, want := make(map[zktest.Op]int), map[zktest.Op]int{zktest.OpSync: l.dirs, zktest.OpGetChildren2: l.dirs}
			if l.limits > 0 {
				want[zktest.OpGetData] = l.limits
			}
			for _, r := range w.Requests() {
				if ofLocks(r) {
					sent[r.Op]++
				}
			}
			if !maps.Equal(sent, want) {
				t.Errorf("%s: %v, want %v", name, sent, want)
			}
			w.Must(l.holder.Unlock())
			w.Pass(time.Second)
			if took := bubble.Took(func() {
				if !try() {
					t.Errorf("%s: busy although it is free", name)
				}
			}); took != time.Duration(l.free)*roundTrip {
				t.Errorf("%s: got after %v", name, took)
			}
			w.Must(l.try.Unlock())
			w.Delay(0)
			w.Pass(time.Second)
		}
	})
}

// A MultiLock looks at all of its locks in one round trip, also at those that it takes by themselves. If the last one
// is busy, it has written nothing, and a place that this process keeps stays.
func TestTryOfSeveralLooksFirst(t *testing.T) {
	curators := func(m *session.Manager) *semaphore.Semaphore {
		return newSem(t, m, "/b", 1, semaphore.WithCuratorLayout())
	}
	type locks = []zklock.ContextLocker
	for what, c := range map[string]struct {
		ours func(w *world, m *session.Manager) locks
		busy func(w *world, other *session.Manager) locker
	}{
		"readers that share a place": {ours: func(_ *world, m *session.Manager) locks {
			return locks{newRW(t, m, "/a", lazyRW).Reader()}
		}},
		"a place that another object keeps": {ours: func(w *world, m *session.Manager) locks {
			w.Must(newMutex(t, m, "/a", lazy).Do(w.Context(), nothing))
			return locks{newMutex(t, m, "/a")}
		}},
		"seventy more": {ours: func(_ *world, m *session.Manager) (all locks) {
			for i := range 70 { // more than a connection has in flight
				all = append(all, newMutex(t, m, fmt.Sprintf("/a%02d", i)))
			}
			return all
		}},
		"Curator's layout, without a lease": {
			func(_ *world, m *session.Manager) locks { return locks{newMutex(t, m, "/a"), curators(m)} },
			func(_ *world, other *session.Manager) locker { return curators(other) },
		},
		"Curator's layout, behind the gate": {
			func(_ *world, m *session.Manager) locks { return locks{newMutex(t, m, "/a"), curators(m)} },
			func(_ *world, other *session.Manager) locker { return newMutex(t, other, "/b/locks") },
		},
	} {
		run(t, func(w *world) {
			m, other := w.Connect(), w.Connect()
			several := newMulti(t, append(c.ours(w, m), newMutex(t, m, "/z"))...)
			var busy locker = newMutex(t, other, "/z")
			if c.busy != nil {
				busy = c.busy(w, other)
			}
			w.Must(busy.Lock(w.Context()))
			w.Pass(time.Second)
			w.Delay(roundTrip / 2)
			w.ResetRequests()
			took := bubble.Took(func() {
				got, err := several.TryLock(w.Context())
				if got || err != nil {
					t.Errorf("%s: %v, %v", what, got, err)
				}
			})
			if took != roundTrip && what != "seventy more" || w.Count(writes) > 0 {
				t.Errorf("%s: %v, and %d writes", what, took, w.Count(writes))
			}
			w.Delay(0)
		})
	}
}

// A try finds a lock free that was released before, also over a server that lags behind.
func TestTryBehindSync(t *testing.T) {
	run(t, func(w *world) {
		at := func(i int) *zklock.Mutex { return newMutex(t, w.Connect(session.WithDialer(w.DialerTo(i))), lockPath) }
		holder, try := at(2), at(0)
		w.Must(holder.Lock(w.Context()))
		testserver.Switch(w.Server).DelayLink(2, 0, time.Second) // from the leader
		w.Must(holder.Unlock())
		if got, err := try.TryLock(w.Context()); !got || err != nil {
			t.Errorf("a lock that was released before: %v, %v", got, err)
		}
	}, zktest.Servers(3))
}

// A try that may not list the contenders fails, and has written nothing. Where there is no directory, nobody contends.
func TestTryMayNotLook(t *testing.T) {
	run(t, func(w *world) {
		m := w.Connect()
		if got, err := newMutex(t, m, "/a").TryLock(w.Context()); !got || err != nil {
			t.Errorf("where there is no directory: %v, %v", got, err)
		}
		w.Make("/b", "", zk.PermAll&^zk.PermRead)
		w.ResetRequests()
		got, err := newMutex(t, m, "/b").TryLock(w.Context())
		w.Want("TryLock", err, zk.ErrNoAuth)
		if got || w.Count(writes) > 0 {
			t.Errorf("%v, and sent %v", got, w.Requests())
		}
	})
}

// If the connection breaks between the sync and the listing, or with them, both are sent again.
func TestTryCut(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpSync, zktest.OpGetChildren2} {
		for what, arm := range map[string]func(*zktest.Server, zktest.Match) *zktest.Fault{
			"before": (*zktest.Server).CutBefore, "after": (*zktest.Server).CutAfterCommit,
		} {
			run(t, func(w *world) {
				w.Must(newMutex(t, w.Connect(), lockPath).Lock(w.Context()))
				try := newMutex(t, w.Connect(), lockPath)
				w.ResetRequests()
				cut := arm(w.Server, zktest.On(op, lockPath))
				if got, err := try.TryLock(w.Context()); got || err != nil {
					t.Errorf("%s %v: %v, %v", what, op, got, err)
				}
				w.Await(cut.Hit())
				var sync zktest.Request // must be on the connection of the latest listing, and before it
				for _, r := range w.Requests() {
					if r.Op == zktest.OpSync && r.Path == lockPath {
						sync = r
					} else if r.Op == zktest.OpGetChildren2 && r.Conn != sync.Conn {
						t.Errorf("%s %v: a listing without a sync: %v", what, op, w.Requests())
					}
				}
				if w.Count(zktest.On(zktest.OpSync, lockPath)) < 2 || w.Count(writes) > 0 {
					t.Errorf("%s %v: %v", what, op, w.Requests())
				}
			})
		}
	}
}

// A try gets a lock that nobody uses, however far the process is that keeps its place: its server hears late of what happens.
func TestTryFarKeeper(t *testing.T) {
	lazyTry := zklock.WithLazyRelease(time.Millisecond)
	for name, locks := range map[string]func(keeps, tries *session.Manager) (keeper, try locker){
		"mutex": func(keeps, tries *session.Manager) (keeper, try locker) {
			return newMutex(t, keeps, lockPath, lazy), newMutex(t, tries, lockPath)
		},
		"lazy try": func(keeps, tries *session.Manager) (keeper, try locker) {
			return newMutex(t, keeps, lockPath, lazy), newMutex(t, tries, lockPath, lazyTry)
		},
		"readers": func(keeps, tries *session.Manager) (keeper, try locker) {
			return newRW(t, keeps, lockPath, lazyRW).Reader(), newRW(t, tries, lockPath, lazyRW)
		},
		"writer": func(keeps, tries *session.Manager) (keeper, try locker) {
			return newRW(t, keeps, lockPath, lazyRW), newRW(t, tries, lockPath, lazyRW).Reader()
		},
	} {
		for _, oneWay := range []time.Duration{0, 2, 5, 10, 50} {
			run(t, func(w *world) {
				for _, link := range [][2]int{{0, 2}, {2, 0}} { // the last server leads
					testserver.Switch(w.Server).DelayLink(link[0], link[1], oneWay*time.Millisecond)
				}
				keeper, try := locks(w.Connect(session.WithDialer(w.DialerTo(0))), w.Connect(session.WithDialer(w.DialerTo(2))))
				for i := range 20 {
					for range 2 { // the second use shows that the place is worth keeping
						w.Must(keeper.Lock(w.Context()))
						w.Must(keeper.Unlock())
					}
					w.Pass(time.Second) // nobody uses it
					ok, err := try.TryLock(w.Context())
					w.Must(err)
					if !ok {
						t.Fatalf("%s, %d ms away: try %d is busy, though nobody holds the lock", name, oneWay, i)
					}
					w.Must(try.Unlock())
					w.Pass(time.Second)
				}
			}, zktest.Servers(3))
		}
	}
}

// How long a try takes to say busy. Only for a place that may be kept it waits for more than the servers, and not if the
// lock is known to be in use: by the same session, or because another contender waits already.
func TestTryBusyTakes(t *testing.T) {
	for what, c := range map[string]struct {
		same  bool // the try is of the holder's session
		waits bool // another contender waits
		least time.Duration
		most  time.Duration
	}{
		"keeper":                        {false, false, 250 * time.Millisecond, 250*time.Millisecond + 4*roundTrip},
		"keeper of the same session":    {true, false, 0, 2 * roundTrip},
		"keeper that another waits for": {false, true, 0, 2 * roundTrip},
	} {
		run(t, func(w *world) {
			holding, trying := w.Connect(), w.Connect()
			if c.same {
				trying = holding
			}
			w.Must(newMutex(t, holding, lockPath, lazy).Lock(w.Context()))
			if c.waits {
				waiter := newMutex(t, w.Connect(), lockPath, lazy)
				w.Go(func() error { return waiter.Lock(w.Context()) })
			}
			w.Pass(time.Second)
			w.Delay(roundTrip / 2)
			var got bool
			var err error
			took := bubble.Took(func() { got, err = newMutex(t, trying, lockPath).TryLock(w.Context()) })
			if got || err != nil || took > c.most || took < c.least {
				t.Errorf("%s: %v, %v after %v, want false after %v to %v", what, got, err, took, c.least, c.most)
			}
			w.Delay(0)
		})
	}
}
