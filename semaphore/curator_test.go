package semaphore_test

import (
	"context"
	"path"
	"regexp"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
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
