package semaphore_test

import (
	"context"
	"path"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const uuidPattern = `_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`

var (
	leaseName = regexp.MustCompile(`^` + uuidPattern + `-lease-\d{10}$`)
	lockName  = regexp.MustCompile(`^` + uuidPattern + `-lock-\d{10}$`)
)

// curators returns a semaphore in Curator's layout, with a session of its own.
func curators(tb testing.TB, dir string, limit int) *semaphore.Semaphore {
	tb.Helper()
	return newSem(tb, connect(tb), dir, limit, semaphore.WithCuratorLayout())
}

// directories creates the directories of Curator's layout, which otherwise vanish when they are empty.
func directories(tb testing.TB, dir string) {
	tb.Helper()
	persistent(tb, dir+"/locks", "")
	persistent(tb, dir+"/leases", "10.0.0.7") // a user may set such data
}

// nodes checks the number and the names of the nodes in both directories.
func nodes(tb testing.TB, dir string, leases, locks int) {
	tb.Helper()
	testserver.WaitChildren(tb, dir+"/leases", leases)
	testserver.WaitChildren(tb, dir+"/locks", locks)
	for _, of := range []struct {
		dir  string
		name *regexp.Regexp
	}{{"/leases", leaseName}, {"/locks", lockName}} {
		for _, name := range testserver.Children(tb, dir+of.dir) {
			if !of.name.MatchString(name) {
				tb.Errorf("%s%s/%s", dir, of.dir, name)
			}
		}
	}
}

// Nodes are in Curator's places. A holder has a node among the leases and none among the locks any more. The first waiter
// has one of each, and the waiters behind it have one among the locks. No data has a limit. A cancelled call leaves nothing
// behind, and the next takes its place.
func TestCuratorNodes(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	directories(t, dir)
	s := curators(t, dir, 2)
	held := []*queue.Lease{take(t, s, 1), take(t, s, 1)}
	nodes(t, dir, 2, 0)
	if parent := path.Dir(held[0].Path()); parent != dir+"/leases" {
		t.Errorf("the lease is in %s", parent)
	}
	for node, want := range map[string]string{"": "", "/leases": "10.0.0.7", "/locks": ""} {
		if data := dataOf(t, dir+node); data != want {
			t.Errorf("data of %s: %q", dir+node, data)
		}
	}
	var calls []*call
	for i := range 3 {
		calls = append(calls, enterAt(t, curators(t, dir, 2), 1, dir+"/locks"))
		nodes(t, dir, 3, i+1)
	}
	all, err := s.Contenders(ctx)
	must(t, err)
	var holders []bool
	for _, c := range all {
		holders = append(holders, c.Holder)
	}
	if len(all) != 5 || !all[0].Holder || !all[1].Holder || all[2].Holder || all[3].Holder || all[4].Holder {
		t.Errorf("contenders: %v", holders)
	}
	busy(t, s, 1)
	nodes(t, dir, 3, 3)

	cancelled := func(c *call, locks int) {
		t.Helper()
		c.cancel()
		wantErr(t, "a cancelled call", c.fail(t), context.Canceled)
		nodes(t, dir, 3, locks)
	}
	cancelled(calls[1], 2) // among the locks
	cancelled(calls[0], 1) // among the leases; the last call is there now
	calls[2].waits(t, "two are held of two")
	release(t, held[1])
	l := calls[2].get(t)
	nodes(t, dir, 2, 0)
	last := enterAt(t, s, 1, dir+"/locks")
	nodes(t, dir, 3, 1)
	last.cancel()
	wantErr(t, "a cancelled call", last.fail(t), context.Canceled)
	nodes(t, dir, 2, 0)
	release(t, held[0], l)
	nodes(t, dir, 0, 0)
}

// Leases and locks of all other clients count.
func TestCuratorForged(t *testing.T) {
	dir := testserver.Path(t)
	directories(t, dir)
	s := curators(t, dir, 2)
	lease := forge(t, dir+"/leases", "lease-")
	l := take(t, s, 1)
	busy(t, s, 1)
	waits := enterAt(t, s, 1, dir+"/locks")
	nodes(t, dir, 3, 1)
	waits.waits(t, "two are held of two")
	testserver.Delete(t, lease)
	second := waits.get(t)
	release(t, l, second)

	lock := forge(t, dir+"/locks", "lock-")
	busy(t, s, 1) // another contender holds the gate
	waits = enterAt(t, s, 1, dir+"/locks")
	nodes(t, dir, 0, 2)
	waits.waits(t, "another is at the gate")
	testserver.Delete(t, lock)
	release(t, waits.get(t))
	nodes(t, dir, 0, 0)
}

// A node whose name asks for three leases in the semaphore's own way is one lease here, as it is to Curator.
func TestCuratorCountsNodes(t *testing.T) {
	dir := testserver.Path(t)
	s := curators(t, dir, 2)
	l := take(t, s, 1)
	heavy := forge(t, dir+"/leases", "x3-lease-")
	busy(t, s, 1)
	release(t, l)
	l = take(t, s, 1)
	testserver.Delete(t, heavy)
	release(t, l)
}

// A contender that waits among the leases and loses the gate starts over at the end of the queue. Its node among the leases
// goes, since only the holder of the gate waits with such a node.
func TestCuratorGateLost(t *testing.T) {
	for _, way := range []struct {
		name string
		lose func(t *testing.T, dir string, proxy *zktest.Proxy, m *session.Manager)
	}{
		{"node deleted", func(t *testing.T, dir string, _ *zktest.Proxy, _ *session.Manager) {
			testserver.Delete(t, dir, "locks", oldest(t, dir+"/locks"))
		}},
		{"session expired", func(t *testing.T, _ string, proxy *zktest.Proxy, m *session.Manager) {
			expire(t, proxy, m)
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			dir := testserver.Path(t)
			proxy := testserver.Proxy(t)
			m := behind(t, proxy)
			held := take(t, curators(t, dir, 1), 1)
			first := enterAt(t, newSem(t, m, dir, 1, semaphore.WithCuratorLayout()), 1, dir+"/locks")
			nodes(t, dir, 2, 1)
			second := enterAt(t, curators(t, dir, 1), 1, dir+"/locks")
			lock, lease := oldest(t, dir+"/locks"), newest(t, dir+"/leases")

			way.lose(t, dir, proxy, m)
			zktest.Eventually(t, testserver.Patience, "the first to start over", func() bool {
				return oldest(t, dir+"/locks") != lock && len(testserver.Children(t, dir+"/locks")) == 2 &&
					newest(t, dir+"/leases") != lease && len(testserver.Children(t, dir+"/leases")) == 2
			})
			first.waits(t, "the lease is held")
			release(t, held)
			l := second.get(t)
			first.waits(t, "the lease is held")
			release(t, l)
			release(t, first.get(t))
			nodes(t, dir, 0, 0)
		})
	}
}

// oldest and newest return the names of the nodes with the lowest and the highest number.
func oldest(tb testing.TB, dir string) string { name, _ := ends(tb, dir); return name }
func newest(tb testing.TB, dir string) string { _, name := ends(tb, dir); return name }

func ends(tb testing.TB, dir string) (oldest, newest string) {
	tb.Helper()
	number := func(name string) string { return name[max(0, len(name)-10):] }
	for _, name := range testserver.Children(tb, dir) {
		if oldest == "" || number(name) < number(oldest) {
			oldest = name
		}
		if newest == "" || number(name) > number(newest) {
			newest = name
		}
	}
	return oldest, newest
}

// The manager is closed while a call waits for the gate or among the leases.
func TestCuratorClosed(t *testing.T) {
	dir := testserver.Path(t)
	directories(t, dir)
	held := take(t, curators(t, dir, 1), 1)
	for i := range 2 {
		m := connect(t)
		c := enterAt(t, newSem(t, m, dir, 1, semaphore.WithCuratorLayout()), 1, dir+"/locks")
		if i == 0 {
			nodes(t, dir, 2, 1)
			must(t, m.Close())
			wantErr(t, "within", c.fail(t), session.ErrClosed)
			nodes(t, dir, 1, 0)
			forge(t, dir+"/locks", "lock-")
			continue
		}
		must(t, m.Close())
		wantErr(t, "at the gate", c.fail(t), session.ErrClosed)
		nodes(t, dir, 1, 1)
	}
	release(t, held)
}

// ctx ends when the lease is granted, but the server has not yet confirmed the release of the gate. That release goes on by
// itself. The lease is returned if it is known by then that the path has no contender of the other layout, and given up
// otherwise.
func TestCuratorGatePending(t *testing.T) {
	dir := testserver.Path(t)
	proxy := testserver.Proxy(t)
	s := newSem(t, behind(t, proxy), dir, 1, semaphore.WithCuratorLayout())
	held := proxy.HoldReply(zktest.On(zktest.OpDelete, dir+"/locks/"))
	c := begin(t, s, 1)
	receive(t, "the delete", held.Hit())
	c.waits(t, "the server has not answered")
	c.cancel()
	receive(t, "the end of Acquire", c.done)
	held.Release()
	if c.err == nil {
		must(t, c.lease.Err())
		nodes(t, dir, 1, 0)
		release(t, c.lease)
	} else {
		wantErr(t, "Acquire", c.err, context.Canceled)
	}
	nodes(t, dir, 0, 0)
}

// If the server lets a client create nodes at the gate but not delete them, the call returns the refusal, and no lease.
func TestCuratorGateRefused(t *testing.T) {
	dir := testserver.Path(t)
	persistent(t, dir+"/leases", "")
	acl := zk.WorldACL(zk.PermRead | zk.PermWrite | zk.PermCreate | zk.PermAdmin)
	_, err := testserver.Admin(t).Create(dir+"/locks", nil, 0, acl)
	must(t, err)
	m := connect(t)
	s := newSem(t, m, dir, 2, semaphore.WithCuratorLayout())
	_, err = s.Acquire(patient(t))
	wantErr(t, "Acquire", err, zk.ErrNoAuth)
	testserver.WaitChildren(t, dir+"/leases", 0)
	must(t, m.Close())
	testserver.WaitChildren(t, dir+"/locks", 0)
}

// javaClient takes leases in the way of InterProcessSemaphoreV2, with a plain client.
type javaClient struct {
	conn  *zk.Conn
	dir   string
	limit int
}

func (j javaClient) acquire() (lease string, err error) {
	lock := zk.NewLock(j.conn, j.dir+"/locks", zk.WorldACL(zk.PermAll))
	if err := lock.Lock(); err != nil {
		return "", err
	}
	lease, err = j.conn.CreateProtectedEphemeralSequential(j.dir+"/leases/lease-", nil, zk.WorldACL(zk.PermAll))
	for err == nil {
		children, _, changed, listErr := j.conn.ChildrenW(j.dir + "/leases")
		if err = listErr; err != nil || len(children) <= j.limit {
			break
		}
		<-changed
	}
	if unlockErr := lock.Unlock(); err == nil {
		err = unlockErr
	}
	return lease, err
}

// This package's and Curator's way of counting, together under load: there are never more leases than the limit, and no
// call waits for ever.
func TestCuratorWithJavasCount(t *testing.T) {
	const limit, each = 3, 4
	times := longtest.Pick(10, 25)
	ctx := patient(t)
	dir := testserver.Path(t)
	directories(t, dir)
	inside := counter{limit: limit, full: make(chan struct{})}
	var g errgroup.Group
	for range each {
		s := curators(t, dir, limit)
		g.Go(func() error {
			for range times {
				l, err := s.Acquire(ctx)
				if err != nil {
					return err
				}
				inside.use()
				if err := l.Release(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		j := javaClient{plainClient(t), dir, limit}
		g.Go(func() error {
			for range times {
				lease, err := j.acquire()
				if err != nil {
					return err
				}
				inside.use()
				if err := j.conn.Delete(lease, -1); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(t, g.Wait())
	if inside.most != limit {
		t.Errorf("up to %d inside, of %d", inside.most, limit)
	}
	testserver.WaitChildren(t, dir+"/leases", 0)
	testserver.WaitChildren(t, dir+"/locks", 0)
}

// counter counts the holders, and keeps the maximum.
type counter struct {
	limit int
	full  chan struct{} // closed when the maximum is reached

	mu      sync.Mutex
	n, most int
}

// use is called with a lease. The first callers return when as many have come as the limit allows.
func (c *counter) use() {
	c.add(1)
	select {
	case <-c.full:
	case <-time.After(testserver.Patience):
	}
	c.add(-1)
}

func (c *counter) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += n
	if c.n >= c.limit && c.most < c.limit {
		close(c.full)
	}
	c.most = max(c.most, c.n)
}

type discard struct{}

func (discard) Printf(string, ...any) {}

// plainClient returns a client of go-zookeeper.
func plainClient(tb testing.TB) *zk.Conn {
	tb.Helper()
	conn, _, err := zk.Connect([]string{testserver.Server(tb).Addr(0)}, long, zk.WithLogger(discard{}))
	must(tb, err)
	tb.Cleanup(conn.Close)
	return conn
}
