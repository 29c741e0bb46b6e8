package rwlock_test

import (
	"fmt"
	"path"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A free lock costs the same for readers and writers, however many readers hold it: a create and a listing that are
// sent together, a get that sets the watch on the own node, and a delete. To enter again costs nothing. A downgrade
// costs as much as an acquisition.
func TestFramesUncontended(t *testing.T) {
	dir := persistentDir(t)
	m, proxy := proxied(t)
	rw := newLock(t, m, dir)
	cost := func(what string, getData int, f func()) {
		t.Helper()
		proxy.ResetRequests()
		f()
		for op, most := range map[zktest.Op]int{
			zktest.OpCreate: 1, zktest.OpGetChildren2: 2, zktest.OpGetData: getData, zktest.OpDelete: 1,
		} {
			m := zktest.On(op, dir)
			if op == zktest.OpGetChildren2 { // 2 if the listing overtook the create
				m = listing(dir)
			}
			if n := proxy.Count(m); n < 1 && op != zktest.OpGetData || n > most {
				t.Errorf("%s: %d requests %v, want at most %d", what, n, op, most)
			}
		}
		if n := proxy.Count(inDir(dir)); n > 4+getData {
			t.Errorf("%s: %d requests", what, n)
		}
	}
	once := func(kind string) func() {
		return func() {
			l, err := acquire(rw, kind)(patient(t))
			must(t, err)
			_, err = l.Token(patient(t)) // its watch is set by then
			must(t, err)
			must(t, l.Release(patient(t)))
		}
	}
	cost("write", 1, once("W"))
	cost("read", 1, once("R"))
	for range 10 {
		defer forge(t, dir, curator(queue.PrefixRead)).delete()
	}
	cost("read beside ten", 1, once("R"))

	dir = persistentDir(t)
	rw = newLock(t, m, dir)
	owner := queue.WithOwner(patient(t))
	must(t, rw.Lock(owner))
	// The watches on both nodes are set in the background, if the hold lasts long enough.
	cost("downgrade", 2, func() {
		must(t, rw.RLock(owner))
		must(t, rw.Unlock())
	})
	must(t, rw.RUnlock())
}

// Ten readers, each in a session of its own, wait behind a writer that holds the lock and others that wait. When the
// last of the writers leaves, all readers get the lock without a request: in this test no request gets through. Before
// that, each reader has listed the directory at most once, when the last but one writer left. So there is no herd that
// lists the directory at the hand-over.
func TestNoHerd(t *testing.T) {
	for _, tt := range []struct{ writers, listings int }{
		{1, 0},
		{2, 0}, // both are watched
		{3, 1}, // the first is not watched, and may still be there when the second leaves
		{5, 1},
	} {
		t.Run(fmt.Sprint(tt.writers, " writers"), func(t *testing.T) { testNoHerd(t, tt.writers, tt.listings) })
	}
}

func testNoHerd(t *testing.T, writers, listings int) {
	const readers = 10
	dir := persistentDir(t)
	var ahead []*rwlock.RWMutex
	var written []<-chan error
	for i := range writers {
		rw := newLock(t, connect(t), dir)
		ahead, written = append(ahead, rw), append(written, queued(t, dir, i+1, rw.Lock))
	}
	watching := make(chan struct{}, 10*readers)
	var proxies []*zktest.Proxy
	var locks []*rwlock.RWMutex
	var entered []<-chan error
	for i := range readers {
		m, proxy := proxied(t, watchHook(watching))
		rw := newLock(t, m, dir)
		entered = append(entered, queued(t, dir, writers+i+1, rw.RLock))
		receive(t, "the reader to watch", watching)
		proxies, locks = append(proxies, proxy), append(locks, rw)
	}
	for _, p := range proxies {
		p.ResetRequests()
	}
	for i, rw := range ahead {
		must(t, receive(t, "a writer", written[i]))
		if i == writers-1 {
			for range readers * listings {
				receive(t, "the readers to watch the last writer alone", watching)
			}
			for _, p := range proxies {
				p.Blackhole(zktest.ToServer)
			}
		}
		must(t, rw.Unlock())
	}
	for i, ch := range entered {
		must(t, receive(t, "a reader", ch))
		if all, lists := proxies[i].Count(toEnter(dir)), proxies[i].Count(listing(dir)); all != listings || lists != listings {
			t.Errorf("reader %d: %d requests, of which %d were listings; want %d", i, all, lists, listings)
		}
	}
	for _, rw := range locks { // all hold the lock at once
		if !rw.Reader().Held() {
			t.Error("a reader has lost its lock")
		}
	}
	for _, p := range proxies {
		p.Heal()
	}
	for _, rw := range locks {
		must(t, rw.RUnlock())
	}
	testserver.WaitChildren(t, dir, 0)
}

// A writer behind a writer lists the directory once when that writer leaves, since it may have left a reader in its
// place. A writer behind readers only takes the lock over without a request, and so does a reader.
func TestFramesHandOver(t *testing.T) {
	for _, tt := range []struct {
		ahead, waits string
		listings     int
	}{
		{"W", "W", 1}, {"W", "R", 0}, {"R", "W", 0},
	} {
		t.Run(tt.ahead+tt.waits, func(t *testing.T) {
			dir := persistentDir(t)
			holder, err := acquire(newLock(t, connect(t), dir), tt.ahead)(patient(t))
			must(t, err)
			watching := make(chan struct{}, 10)
			m, proxy := proxied(t, watchHook(watching))
			rw := newLock(t, m, dir)
			var l *queue.Lease
			ctx := patient(t)
			entered := background(func() (err error) {
				l, err = acquire(rw, tt.waits)(ctx)
				return err
			})
			receive(t, "the waiter to watch", watching)
			proxy.ResetRequests()
			must(t, holder.Release(patient(t)))
			must(t, receive(t, "the waiter", entered))
			if all, lists := proxy.Count(toEnter(dir)), proxy.Count(listing(dir)); all != lists || lists != tt.listings {
				t.Errorf("%d requests, of which %d listings; want %d", all, lists, tt.listings)
			}
			must(t, l.Release(patient(t)))
			if names := testserver.Children(t, dir); len(names) != 0 {
				t.Errorf("left: %s", path.Join(names...))
			}
		})
	}
}
