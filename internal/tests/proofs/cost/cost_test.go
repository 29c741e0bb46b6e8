package cost

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// heartbeats are the requests that a session sends without locks, or once for all of its locks.
var heartbeats = []zktest.Op{zktest.OpPing, zktest.OpSync, zktest.OpMulti}

var (
	writes   = []zktest.Op{zktest.OpCreate, zktest.OpCreate2, zktest.OpDelete}
	listings = []zktest.Op{zktest.OpGetChildren, zktest.OpGetChildren2}
)

// share is the cost of each of several contenders, from before it came until it had left, without heartbeats.
type share struct{ requests, writes, listings float64 }

func shareOf(t traffic, n int) share {
	each := func(count int) float64 { return float64(count) / float64(n) }
	return share{each(t.all() - t.of(heartbeats...)), each(t.of(writes...)), each(t.of(listings...))}
}

// cost is the cost of a line of takers.
type cost struct {
	share
	takers  int
	watches float64 // on the server, for each waiter
	alone   float64 // round trips to take the lock and to give it back, without waiters
	handed  int     // how many takers it was handed over to
	drained float64 // round trips from the first release until the last is in
}

// handover returns the round trips of one hand-over.
func (c cost) handover() float64 { return c.drained / float64(max(c.handed, 1)) }

// line has the takers come one after another. The first ones hold the lock, as many as may, until
// all others wait. Then the holders release it, all at once, and each of the others releases it as
// soon as it holds it.
func (w *world) line(takers []taker, holders int) cost {
	w.Helper()
	w.warmUp(takers[0])
	w.ResetRequests()
	c := cost{takers: len(takers)}
	if len(takers) == 1 {
		c.alone = w.warmUp(takers[0])
		c.share = shareOf(w.traffic(), 1)
		return c
	}
	c.handed = max(len(takers)-holders, 0)
	var g errgroup.Group
	open := make(chan struct{})
	in := make([]time.Time, len(takers))
	before := 0
	for i, take := range takers {
		if i == holders {
			before = w.watches()
		}
		g.Go(func() error {
			giveBack, err := take(w.Context())
			if err != nil {
				return err
			}
			in[i] = time.Now()
			if i < holders {
				<-open
			}
			return giveBack()
		})
		time.Sleep(pause) // so that it stands in line
	}
	if c.handed > 0 {
		c.watches = float64(w.watches()-before) / float64(c.handed)
	}
	began := time.Now()
	close(open)
	if err := g.Wait(); err != nil {
		w.Fatal(err)
	}
	if c.handed > 0 {
		c.drained = trips(slices.MaxFunc(in, time.Time.Compare).Sub(began))
	}
	time.Sleep(pause)
	c.share = shareOf(w.traffic(), len(takers))
	return c
}

// warmUp takes the lock and gives it back, so that its directory is there. It returns the
// round trips that the two took.
func (w *world) warmUp(take taker) float64 {
	w.Helper()
	began := time.Now()
	giveBack, err := take(w.Context())
	w.Must(err)
	took := time.Since(began)
	time.Sleep(pause)
	began = time.Now()
	w.Must(giveBack())
	took += time.Since(began)
	time.Sleep(pause)
	return trips(took)
}

func atMost(t *testing.T, what string, got, most float64) {
	t.Helper()
	if got > most {
		t.Errorf("%s: %.3f, want at most %.3f", what, got, most)
	}
}

// slack is for listings that overtake the create with which they were sent. The scheduler decides
// that, and such a listing is made again.
const slack = 0.05

// again returns the round trips for a taker that lists a second time.
func again(s share) float64 {
	if s.listings > 1 {
		return 1
	}
	return 0
}

// The cost of a lock does not grow with its contenders, but for the length of a listing.
func TestLine(t *testing.T) {
	for _, l := range []struct {
		name              string
		holders, sessions int
		shared            bool
		lock              opens
		promise           func(*testing.T, cost)
	}{
		{"mutex", 1, mostSessions, false, mutexOf(), func(t *testing.T, c cost) {
			if c.takers == 1 {
				atMost(t, "round trips, alone", c.alone, 2+again(c.share))
				atMost(t, "requests, alone", c.requests, 4+1)
			}
			atMost(t, "round trips for a hand-over", c.handover(), 1.01)
			atMost(t, "requests", c.requests, 7+slack)
			atMost(t, "writes", c.writes, 2)
			atMost(t, "listings", c.listings, 2+slack)
			atMost(t, "watches", c.watches, 3)
		}},
		// A turn costs as much as one acquisition, however many takers it serves, and two round trips: one to enter the
		// queue again, and one to leave. There are two processes.
		{"mutex with hand-over", 1, 2, true, mutexOf(zklock.WithLocalHandover(handovers)), func(t *testing.T, c cost) {
			sessions := min(2, c.takers)
			each := (c.takers + sessions - 1) / sessions
			turns := sessions * ((each + handovers) / (handovers + 1))
			atMost(t, "requests in all", c.requests*float64(c.takers), (7+slack)*float64(turns)+1)
			atMost(t, "round trips in all", c.drained, 2*float64(turns))
			atMost(t, "watches in all", c.watches*float64(c.handed), 3*float64(sessions))
		}},
		// The worst case: all holders leave at one instant. A waiter watches the last nodes ahead of it, as many as there
		// are permits and half as many again, so that few waiters have to list.
		{"semaphore", permits, mostSessions, false, semaphoreOf, func(t *testing.T, c cost) {
			atMost(t, "round trips for a hand-over", c.handover(), 2.5/permits)
			atMost(t, "requests", c.requests, 17)
			atMost(t, "writes", c.writes, 2)
			atMost(t, "listings", c.listings, 2+slack)
			atMost(t, "watches", c.watches, permits+permits/2+3)
		}},
	} {
		for _, n := range longtest.Pick([]int{1, 2, 100}, []int{1, 2, 10, 100, 1000}) {
			t.Run(fmt.Sprint(l.name, "/", n), func(t *testing.T) {
				in(t, func(w *world) {
					c := w.line(w.team(n, l.sessions, l.shared, l.lock), l.holders)
					t.Logf("%+v", c)
					l.promise(t, c)
				})
			})
		}
	}
}

// Readers that come all at once get in together, into a free lock and behind a writer that leaves.
func TestReaders(t *testing.T) {
	for _, n := range longtest.Pick([]int{1, 100}, []int{1, 2, 10, 100, 1000}) {
		for _, behind := range []bool{false, true} {
			t.Run(fmt.Sprint(n, ", behind a writer ", behind), func(t *testing.T) {
				in(t, func(w *world) { w.readers(n, behind) })
			})
		}
	}
}

func (w *world) readers(n int, behind bool) {
	w.Helper()
	readers := w.team(n, mostSessions, false, readerOf())
	w.warmUp(readers[0])
	leave, writer := func() error { return nil }, int64(0)
	if behind {
		m := w.manager(longTimeout)
		writer = w.Session(m).ID()
		l, err := rwlock.New(m, lockPath)
		w.Must(err)
		w.Must(l.Lock(w.Context()))
		leave = l.Unlock
		time.Sleep(pause)
	}
	w.ResetRequests()
	var g errgroup.Group
	in, open := make(chan time.Time, n), make(chan struct{})
	began := time.Now()
	for _, take := range readers {
		g.Go(func() error {
			giveBack, err := take(w.Context())
			if err != nil {
				return err
			}
			in <- time.Now()
			<-open
			return giveBack()
		})
	}
	if behind {
		time.Sleep(pause)
		began = time.Now()
	}
	w.Must(leave())
	var last time.Time
	for range n {
		last = <-in
	}
	time.Sleep(pause)
	close(open)
	w.Must(g.Wait())
	time.Sleep(pause)
	s := shareOf(w.traffic(writer), n)
	w.Logf("%+v", s)
	entered, requests := 1+again(s), 5.0
	if n > mostSessions {
		// A reader that comes when a list is on its way in the session takes the next one, or the one behind that.
		entered += 2
	}
	if behind {
		requests++
	}
	atMost(w.T, "round trips until all are in", trips(last.Sub(began)), entered)
	atMost(w.T, "requests", s.requests, requests)
}

// upkeep is what a session sends in a minute while nothing happens.
type upkeep struct{ requests, writes float64 }

// watched is for how long sessions are watched. It is a multiple of the timeouts of all sessions.
const watched = 20 * time.Minute

// idle returns what a session sends that holds some locks and waits for some others.
func idle(t *testing.T, what string, holds, waits int, timeout time.Duration) (u upkeep) {
	in(t, func(w *world) {
		lock := func(m *session.Manager, i int) *zklock.Mutex {
			l, err := zklock.New(m, fmt.Sprintf("/locks/%d", i))
			w.Must(err)
			return l
		}
		m, other := w.manager(timeout), w.manager(timeout)
		for i := range holds {
			w.Must(lock(m, i).Lock(w.Context()))
		}
		var g errgroup.Group
		var release []func() error
		for i := range waits {
			held, wanted := lock(other, holds+i), lock(m, holds+i)
			w.Must(held.Lock(w.Context()))
			release = append(release, held.Unlock)
			g.Go(func() error { return wanted.Lock(w.Context()) })
		}
		time.Sleep(time.Minute) // what only the beginning costs is not counted
		w.ResetRequests()
		time.Sleep(watched)
		sent := w.traffic(w.Session(other).ID())
		u = upkeep{float64(sent.all()) / watched.Minutes(), float64(sent.of(zktest.OpMulti)) / watched.Minutes()}
		for _, f := range release {
			w.Must(f())
		}
		w.Must(g.Wait())
	})
	t.Logf("%s: %+v a minute", what, u)
	return u
}

// What a session sends while nothing happens does not grow with the locks that it holds.
func TestIdle(t *testing.T) {
	longtest.Only(t)
	const timeout, long = 10 * time.Second, 40 * time.Second
	beats := func(d time.Duration) float64 { return float64(time.Minute) / float64(d) }
	const edge = 2 / float64(watched/time.Minute) // what may fall just inside, or just outside
	// A session without locks sends twice as many pings as go-zookeeper's client, which sends one in a third of the timeout.
	nothing := idle(t, "nothing", 0, 0, timeout)
	atMost(t, "writes of an idle session", nothing.writes, 0)
	atMost(t, "requests of an idle session", nothing.requests, 2*3*beats(timeout)+edge)
	// Five rounds of a sync and a write, and pings that the server answers by itself.
	one := idle(t, "holds a lock", 1, 0, timeout)
	atMost(t, "writes of a session that holds a lock", one.writes, 5*beats(timeout)+edge)
	atMost(t, "requests of a session that holds a lock", one.requests, (3+20+5)*beats(timeout)+edge)
	many := idle(t, "holds many", longtest.Pick(100, 1000), 0, timeout)
	atMost(t, "writes of a session that holds many", many.writes, one.writes+edge)
	atMost(t, "requests of a session that holds many", many.requests, one.requests+edge)
	rare := idle(t, "holds a lock, with a long timeout", 1, 0, long)
	atMost(t, "writes with a long timeout", rare.writes, 5*beats(long)+edge)
	waits := idle(t, "waits for 100", 0, 100, timeout)
	atMost(t, "writes of a session that waits", waits.writes, one.writes+edge)
	atMost(t, "requests of a session that waits", waits.requests, one.requests+100*2*beats(timeout)+100*edge)
}

// Clients that try a held lock again and again write nothing, and each try takes one round trip.
func TestBusyTries(t *testing.T) {
	const each, between = 30, time.Second / 30
	clients := longtest.Pick(50, 800)
	in(t, func(w *world) {
		holder := w.manager(longTimeout)
		held, err := zklock.New(holder, lockPath)
		w.Must(err)
		w.Must(held.Lock(w.Context()))
		var all []*zklock.Mutex
		for range clients {
			mx, err := zklock.New(w.manager(longTimeout), lockPath)
			w.Must(err)
			all = append(all, mx)
		}
		time.Sleep(pause)
		w.ResetRequests()
		var g errgroup.Group
		for _, mx := range all {
			g.Go(func() error {
				for range each {
					began := time.Now()
					ok, err := mx.TryLock(w.Context())
					if took := time.Since(began); ok || err != nil || took != roundTrip {
						return fmt.Errorf("%v, %v after %v", ok, err, took)
					}
					time.Sleep(between - time.Since(began))
				}
				return nil
			})
		}
		w.Must(g.Wait())
		got, tries := w.traffic(w.Session(holder).ID()), clients*each
		if got.of(writes...) != 0 || got.of(listings...) != tries || got.of(zktest.OpSync) < tries {
			t.Errorf("the servers got %v, want %d listings and syncs, and no writes", got, tries)
		}
	})
}

// A group is some goroutines that do the same, in sessions of their own or in one.
type group struct {
	what     string
	sessions int
	each     int           // goroutines in each session, which share a lock object
	rest     time.Duration // between a release and the next call
	lock     opens
}

// Nobody starves beside contenders that take the lock again and again.
func TestStarvation(t *testing.T) {
	// use is for how long each holder holds.
	const use, kept = 5 * time.Millisecond, 10 * time.Second
	for _, c := range []struct {
		what   string
		groups []group
		most   time.Duration // that anybody waits
	}{
		{"a writer among readers", []group{{"the writer", 1, 1, 20 * time.Millisecond, writerOf()}, {"readers", 20, 2, 0, readerOf()}}, 5 * use},
		{"a writer among readers that keep their places", []group{
			{"the writer", 1, 1, 20 * time.Millisecond, writerOf()}, {"readers", 20, 2, 0, readerOf(rwlock.WithLazyRelease(kept))},
		}, 5 * use},
		{"readers and writers beside a process that hands over", []group{
			{"readers", 4, 1, time.Millisecond, readerOf()}, {"writers", 2, 1, time.Millisecond, writerOf()},
			{"those that hand over", 1, 8, 0, writerOf(rwlock.WithLazyRelease(kept))},
		}, 100 * use},
		{"a mutex beside a process that hands over 10 times", []group{
			{"two", 2, 1, time.Millisecond, mutexOf()}, {"those that hand over", 1, 8, 0, mutexOf(zklock.WithLocalHandover(10))},
		}, 100 * use},
		{"a mutex beside a process that keeps its place", []group{
			{"two", 2, 1, time.Millisecond, mutexOf()}, {"those that keep it", 1, 8, 0, mutexOf(zklock.WithLazyRelease(kept))},
		}, 100 * use},
	} {
		t.Run(c.what, func(t *testing.T) {
			in(t, func(w *world) {
				until := time.Now().Add(longtest.Pick(time.Second/2, 10*time.Second))
				var mu sync.Mutex
				longest := make(map[string]time.Duration)
				var g errgroup.Group
				for _, one := range c.groups {
					for _, take := range w.team(one.sessions*one.each, one.sessions, true, one.lock) {
						g.Go(func() error {
							for time.Now().Before(until) {
								began := time.Now()
								giveBack, err := take(w.Context())
								if err != nil {
									return err
								}
								mu.Lock()
								longest[one.what] = max(longest[one.what], time.Since(began))
								mu.Unlock()
								time.Sleep(use)
								if err := giveBack(); err != nil {
									return err
								}
								time.Sleep(one.rest)
							}
							return nil
						})
					}
				}
				w.Must(g.Wait())
				t.Log(longest)
				for what, d := range longest {
					if d > c.most {
						t.Errorf("%s wait for %v, want at most %v", what, d, c.most)
					}
				}
			})
		})
	}
}
