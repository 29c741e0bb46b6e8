package queue_test

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// An uncontended lock costs a create and a listing, which are sent together, a read that sets the watch
// on its own node, and a delete.
func TestFramesUncontended(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, _ := proxied(t, dir)
	for range 5 {
		proxy.ResetRequests()
		l := acquire(t, q)
		if _, err := l.Token(patient(t)); err != nil {
			t.Fatal(err)
		}
		release(t, l)
		for _, c := range []struct {
			op       zktest.Op
			min, max int
		}{
			{zktest.OpCreate, 1, 1},
			{zktest.OpGetChildren2, 1, 2}, // 2 if it overtook the create
			{zktest.OpGetData, 1, 1},
			{zktest.OpDelete, 1, 1},
		} {
			if n := proxy.Count(ofContenders(dir, c.op)); n < c.min || n > c.max {
				t.Errorf("%d requests %v, want %d to %d", n, c.op, c.min, c.max)
			}
		}
		if n := proxy.Count(inDir(dir)); n > 5 {
			t.Errorf("%d requests in all", n)
		}
	}
}

// A waiter takes over without a request: none gets through here.
func TestFramesHandOver(t *testing.T) {
	dir := persistentDir(t)
	first := acquire(t, client(t, dir))
	second := enter(t, client(t, dir), 2)
	third := enter(t, client(t, dir), 3)
	watching := make(chan struct{}, 10)
	q, proxy, _ := proxied(t, dir, watchHook(watching))
	fourth := enter(t, q, 4)
	await(t, watching, "the fourth to watch two of three")
	release(t, first)
	release(t, second.get(t))
	s := third.get(t)
	await(t, watching, "the fourth to watch the third alone") // while the third holds
	proxy.ResetRequests()
	proxy.Blackhole(zktest.ToServer)
	release(t, s)
	l := fourth.get(t)
	own := zktest.On(zktest.OpGetData, l.Path()) // after a while, a holder watches its own node
	if n := proxy.Count(func(r zktest.Request) bool { return inDir(dir)(r) && !own(r) }); n != 0 {
		t.Errorf("%d requests at hand-over", n)
	}
	if err := l.Err(); err != nil {
		t.Error(err)
	}
	proxy.Heal()
	onlyChild(t, l)
	release(t, l)
}

// Once per session timeout a waiter asks whether the nodes that it watches are still there, although
// there was no event. It neither lists a long queue for that nor sets a watch twice.
func TestFramesLookAgain(t *testing.T) {
	const dir = "/locks/one"
	// In virtual time, since on a busy machine a connection can be lost, after which a listing would be right.
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		holder := acquire(t, on(t, m, dir))
		q := on(t, testserver.Connect(t, "zookeeper:2181", session.WithDialer(server.Dialer()), session.WithTimeout(long)), dir)
		w := begin(t, q, ask)
		time.Sleep(long / 4) // all watches are set
		all, err := q.Contenders(t.Context(), mutex)
		mustBe(t, err, nil)
		server.ResetRequests()
		time.Sleep(2 * long)
		w.waits(t, "the first holds")
		for _, node := range all {
			if n := server.Count(zktest.On(zktest.OpExists, node.Path)); n != 2 {
				t.Errorf("%d looks at %s in two timeouts", n, node.Path)
			}
		}
		for _, op := range []zktest.Op{zktest.OpGetChildren2, zktest.OpGetData, zktest.OpCreate} {
			if n := server.Count(ofContenders(dir, op)); n > 0 {
				t.Errorf("%d requests %v", n, op)
			}
		}
		release(t, holder)
		release(t, w.get(t))
	})
}

// Waiters of one session behind one node share a watch, and no watch stays.
func TestWatchesDoNotGather(t *testing.T) {
	dir := persistentDir(t)
	holder := acquire(t, client(t, dir))
	if _, err := holder.Token(patient(t)); err != nil {
		t.Fatal(err)
	}
	before := testserver.Watches(t)
	watching := make(chan struct{}, 200)
	q, _, _ := proxied(t, dir, watchHook(watching))
	for range 30 {
		w := begin(t, q, ask)
		await(t, watching, "the waiter to watch")
		w.cancel()
		w.wait(t)
		testserver.WaitChildren(t, dir, 1)
	}
	if n := testserver.Watches(t) - before; n > 1 {
		t.Errorf("%d watches, where one at the holder's node is enough", n)
	}
	release(t, holder)
	zktest.Eventually(t, testserver.Patience, "all watches to end", func() bool { return testserver.Watches(t) <= before-1 })
}
