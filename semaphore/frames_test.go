package semaphore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// writes matches requests that need a quorum.
func writes(dir string) zktest.Match {
	in := under(dir)
	return func(r zktest.Request) bool {
		switch r.Op {
		case zktest.OpCreate, zktest.OpCreate2, zktest.OpCreateContainer, zktest.OpCreateTTL,
			zktest.OpDelete, zktest.OpSetData, zktest.OpMulti, zktest.OpSetACL:
			return in(r)
		}
		return false
	}
}

// An acquisition and its release take two writes, for one lease or several, with or without a wait. The first acquisition
// takes one more, which sets the limit. In Curator's layout they take four.
func TestWrites(t *testing.T) {
	ctx := patient(t)
	for _, layout := range layouts {
		t.Run(layout.name, func(t *testing.T) {
			dir := testserver.Path(t)
			persistent(t, dir+"/locks", "")
			persistent(t, dir+"/leases", "")
			proxy := testserver.Proxy(t)
			s := newSem(t, behind(t, proxy), dir, 3, layout.opts...)
			want, all := 2, 3
			if layout.opts != nil {
				want, all = 4, 1
			} else {
				release(t, take(t, s, 1))
				if n := proxy.Count(writes(dir)); n != 3 {
					t.Errorf("the first: %d writes, want 3", n)
				}
			}
			once := func(what string, get func() *queue.Lease) {
				t.Helper()
				proxy.ResetRequests()
				l := get()
				if _, err := l.Token(ctx); err != nil {
					t.Error(err)
				}
				release(t, l)
				if n := proxy.Count(writes(dir)); n != want {
					t.Errorf("%s: %d writes, want %d", what, n, want)
				}
			}
			once("one", func() *queue.Lease { return take(t, s, 1) })
			once("several", func() *queue.Lease { return take(t, s, all) })
			other := newSem(t, connect(t), dir, 3, layout.opts...)
			held := []*queue.Lease{take(t, other, 1), take(t, other, 1), take(t, other, 1)}
			once("waited for", func() *queue.Lease {
				c := enterAt(t, s, 1, dir+layout.queue)
				release(t, held[0])
				return c.get(t)
			})
			release(t, held[1:]...)
		})
	}
}

// wakes records the sessions that got events.
type wakes struct {
	mu   sync.Mutex
	told map[int64]bool
}

// count is a fault that never strikes. The server asks it about each event.
func (w *wakes) count(server *zktest.Server, dir string) {
	in := under(dir)
	server.HoldReply(func(r zktest.Request) bool {
		if r.Op == zktest.OpNotification && in(r) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.told == nil {
				w.told = make(map[int64]bool)
			}
			w.told[r.Session] = true
		}
		return false
	})
}

// take returns the number of these sessions that got events since the last call.
func (w *wakes) take(sessions []int64) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, id := range sessions {
		if w.told[id] {
			n++
		}
	}
	w.told = nil
	return n
}

// Of a hundred waiting clients, a release wakes the few that watch the holder that left: at most the first three for the
// oldest holder, and one more for each younger one. The first waiter then has the lease, without a request. Each of the
// others lists the directory at most once; for the oldest holder only one of them does.
//
// Time is virtual. A waiting client also looks again once in a session timeout, and after a lost connection. On a busy
// machine a hundred clients take longer than that to enter.
func TestHundredWaiters(t *testing.T) { synctest.Test(t, testHundredWaiters) }

func testHundredWaiters(t *testing.T) {
	const waiters, limit, dir = 100, 3, "/hundred"
	server, err := zktest.New()
	must(t, err)
	t.Cleanup(func() { _ = server.Close() })
	sem := func() (*session.Manager, *semaphore.Semaphore) {
		m := testserver.Connect(t, "zookeeper", session.WithTimeout(long), session.WithDialer(server.Dialer()))
		return m, newSem(t, m, dir, limit)
	}
	_, holder := sem()
	var held []*queue.Lease
	for range limit {
		held = append(held, take(t, holder, 1))
	}
	var calls []*call
	var sessions []int64
	for range waiters {
		m, s := sem()
		sessions = append(sessions, testserver.Session(t, m).ID())
		calls = append(calls, begin(t, s, 1))
		synctest.Wait()
	}
	var woken wakes
	woken.count(server, dir)
	server.ResetRequests()
	mayList := 0
	for i, leaves := range []int{0, 0, 1, 2, 0} { // index of the holder, by age
		release(t, held[leaves])
		l := calls[i].get(t)
		held = append(append(held[:leaves:leaves], held[leaves+1:]...), l)
		synctest.Wait() // each client has got all events
		what := fmt.Sprintf("release %d, of the holder of age %d", i, leaves)
		if n := woken.take(sessions[i:]); n < 1 || n > leaves+3 {
			t.Errorf("%s woke %d clients, want at most %d", what, n, leaves+3)
		}
		calls[i+1].waits(t, "three are held of three")
		mayList += leaves + 1
		listings := server.Count(func(r zktest.Request) bool {
			return (r.Op == zktest.OpGetChildren || r.Op == zktest.OpGetChildren2) && r.Path == dir
		})
		if listings > mayList {
			t.Errorf("%s: %d listings in all, want at most %d", what, listings, mayList)
		}
		if n := server.Count(writes(dir)); n != i+1 { // the releases
			t.Errorf("%s: %d writes in all", what, n)
		}
	}
	for _, c := range calls[5:] {
		c.waits(t, "three are held of three")
		c.cancel()
	}
	synctest.Wait()
	all, err := holder.Contenders(t.Context())
	must(t, err)
	if len(all) != limit {
		t.Errorf("%d contenders are left", len(all))
	}
	for _, l := range held {
		must(t, l.Err())
	}
	release(t, held...)
}

// connectMany returns n managers, which connect at the same time.
func connectMany(tb testing.TB, n int, addr string, opts ...session.Option) []*session.Manager {
	tb.Helper()
	out := make([]*session.Manager, n)
	opts = append([]session.Option{session.WithTimeout(long), quiet}, opts...)
	var g errgroup.Group
	for i := range out {
		g.Go(func() (err error) {
			out[i], err = session.Connect(patient(tb), addr, opts...)
			return err
		})
	}
	err := g.Wait()
	tb.Cleanup(func() {
		for _, m := range out {
			if m != nil {
				g.Go(m.Close)
			}
		}
		_ = g.Wait()
	})
	must(tb, err)
	return out
}

// Among many waiters for many leases, a release makes few of them list, whichever holder it is. Each waiter lists once for
// every half of the leases that come back.
func TestListingsOfManyLeases(t *testing.T) {
	const waiters, limit, releases = 60, 20, 20
	dir := testserver.Path(t)
	proxy := testserver.Proxy(t)
	holder := newSem(t, connect(t), dir, limit)
	var held []*queue.Lease
	for range limit {
		held = append(held, take(t, holder, 1))
	}
	watching := make(chan struct{}, 100*waiters)
	managers := connectMany(t, 10, proxy.Addr(), session.WithTrace(session.Trace{
		Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
			watching <- struct{}{}
			return ctx, nil
		},
	}))
	var calls []*call
	for i := range waiters {
		calls = append(calls, enter(t, newSem(t, managers[i%len(managers)], dir, limit), 1))
		receive(t, "the watches of one that waits", watching)
	}
	proxy.ResetRequests()
	for i := range releases { // of the holder that came last
		release(t, held[len(held)-1])
		held = held[:len(held)-1]
		l := calls[i].get(t)
		defer release(t, l)
	}
	listings := proxy.Count(func(r zktest.Request) bool {
		return (r.Op == zktest.OpGetChildren || r.Op == zktest.OpGetChildren2) && r.Path == dir
	})
	t.Logf("%d listings for %d releases", listings, releases)
	if most := 4 * releases; listings > most {
		t.Errorf("%d listings for %d releases, want at most %d", listings, releases, most)
	}
	for _, c := range calls[releases:] {
		c.cancel()
	}
	release(t, held...)
}
