package semaphore_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A stale limit lets nobody pass. In each of these schedules the limit goes from two to one while H holds one of the leases, and
// X comes behind the node of Resize. X knows that node and the limit of two. Resize sets the limit of one and leaves.

// lowering is a Resize from two to one whose transaction is held back at a proxy, while it holds the difference.
type lowering struct {
	sem   *semaphore.Semaphore
	proxy *zktest.Proxy
	set   *zktest.Fault
	done  <-chan error
	node  string // of the difference
}

func lowerFromTwo(t *testing.T, dir string) *lowering {
	t.Helper()
	l := &lowering{proxy: testserver.Proxy(t)}
	l.sem = newSem(t, behind(t, l.proxy), dir, 2)
	l.set = l.proxy.HoldRequest(zktest.On(zktest.OpMulti, dir+"/"))
	before := testserver.Children(t, dir)
	l.done = resizing(patient(t), t, l.sem, 1)
	receive(t, "the transaction of Resize", l.set.Hit())
	for _, name := range testserver.Children(t, dir) {
		if !strings.Contains(strings.Join(before, " "), name) {
			l.node = dir + "/" + name
		}
	}
	return l
}

// finish lets the transaction go, and waits until Resize has returned: its node has gone.
func (l *lowering) finish(t *testing.T) {
	t.Helper()
	l.set.Release()
	must(t, receive(t, "Resize", l.done))
	if n, err := l.sem.Limit(patient(t)); err != nil || n != 1 {
		t.Fatalf("limit %d, %v", n, err)
	}
}

// X has read the limit of two when the limit is lowered, and lists the contenders after that: Resize is not among them any more.
func TestStaleLimitInAListing(t *testing.T) {
	dir := testserver.Path(t)
	persistent(t, dir, "")
	h := take(t, newSem(t, connect(t), dir, 2), 1)
	l := lowerFromTwo(t, dir)
	proxy, read := testserver.Proxy(t), make(chan error, 10)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(long), session.WithTrace(session.Trace{
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			return ctx, func(err error) {
				if r.Op == "getData" && r.Path == dir {
					read <- err
				}
			}
		},
	}))
	list := proxy.HoldRequest(listing(dir))
	x := begin(t, newSem(t, m, dir, 2), 1)
	must(t, receive(t, "X to have read the limit", read))
	receive(t, "the listing of X", list.Hit())
	l.finish(t)
	list.Release()
	zktest.Eventually(t, testserver.Patience, "X to read the limit again, and to wait for H", func() bool {
		select {
		case <-x.done:
			return true
		default:
			return proxy.Count(zktest.On(zktest.OpGetData, h.Path())) > 0
		}
	})
	x.waits(t, "one is held of one")
	must(t, h.Err())
	release(t, h)
	release(t, x.get(t))
}

// beginsAgain lets the transaction go, which comes too late, and waits until Resize enters again. That is held back.
func (l *lowering) beginsAgain(t *testing.T, dir string) *zktest.Fault {
	t.Helper()
	again := l.proxy.HoldRequest(zktest.On(zktest.OpCreate, dir))
	l.set.Release()
	receive(t, "Resize to begin again", again.Hit())
	underWay(t, l.done, "more are held than the new limit has")
	return again
}

func listing(dir string) zktest.Match {
	return func(r zktest.Request) bool {
		return (r.Op == zktest.OpGetChildren || r.Op == zktest.OpGetChildren2) && r.Path == dir
	}
}

// X waits for H and for the node of Resize, and sees that go. The change of the limit came before that.
func TestStaleLimitInAWait(t *testing.T) {
	dir := testserver.Path(t)
	persistent(t, dir, "")
	h := take(t, newSem(t, connect(t), dir, 2), 1)
	l := lowerFromTwo(t, dir)
	x := slowly(t, dir, 2, 1)
	watched := x.proxy.Count(zktest.On(zktest.OpGetData, h.Path()))
	must(t, h.Err())
	x.proxy.ResetRequests()
	l.finish(t)
	if watched == 0 {
		t.Error("X has not waited for H and Resize")
	}
	zktest.Eventually(t, testserver.Patience, "X to list again", func() bool {
		select {
		case <-x.done:
			return true
		default:
			return x.proxy.Count(listing(dir)) > 0
		}
	})
	x.waits(t, "one is held of one")
	release(t, h)
	release(t, x.get(t))
}

// The node of Resize is deleted by hand before the transaction arrives, and X is let in by the limit of two. The transaction
// must not lower the limit any more: Resize begins again, and waits for what is to go.
func TestLateLowering(t *testing.T) {
	dir := testserver.Path(t)
	persistent(t, dir, "")
	s := newSem(t, connect(t), dir, 2)
	h := take(t, s, 1)
	l := lowerFromTwo(t, dir)
	testserver.Delete(t, l.node)
	x := take(t, newSem(t, connect(t), dir, 2), 1)
	again := l.beginsAgain(t, dir)
	wantLimit(t, s, 2)
	again.Release()
	release(t, h)
	must(t, receive(t, "Resize", l.done))
	wantLimit(t, s, 1)
	must(t, x.Err())
	busy(t, s, 1)
	release(t, x)
}

// Another Resize raises the limit before the transaction that lowers it arrives, and what has been added is held. What the first
// one holds is not the difference any more: it begins again, and waits for the rest.
func TestLoweringAfterARaising(t *testing.T) {
	dir := testserver.Path(t)
	persistent(t, dir, "")
	s := newSem(t, connect(t), dir, 2)
	h := take(t, s, 1)
	must(t, s.Resize(patient(t), 2)) // the limit is pinned: only the version tells of the change
	l := lowerFromTwo(t, dir)
	must(t, s.Resize(patient(t), 4))
	x := take(t, s, 2)
	again := l.beginsAgain(t, dir)
	wantLimit(t, s, 4)
	again.Release()
	release(t, h)
	underWay(t, l.done, "two are held")
	release(t, x)
	must(t, receive(t, "Resize", l.done))
	wantLimit(t, s, 1)
}

// Another Resize has raised the limit to more before the node of one that raises it stands, and all leases are held.
func TestRaisingBehindAnother(t *testing.T) {
	dir := testserver.Path(t)
	persistent(t, dir, "")
	s := newSem(t, connect(t), dir, 2)
	release(t, take(t, s, 1))
	proxy := testserver.Proxy(t)
	enters := proxy.HoldRequest(zktest.On(zktest.OpCreate, dir))
	resizer, done := newSem(t, behind(t, proxy), dir, 2), make(chan error, 1)
	go func() { done <- resizer.Resize(patient(t), 3) }()
	receive(t, "Resize to enter", enters.Hit())
	must(t, s.Resize(patient(t), 9))
	all := take(t, s, 9)
	enters.Release()
	zktest.Eventually(t, testserver.Patience, "Resize to wait for what is to go", func() bool {
		return slices.ContainsFunc(testserver.Children(t, dir), func(name string) bool { return strings.Contains(name, "-x6-") })
	})
	underWay(t, done, "nine are held of nine")
	wantLimit(t, s, 9)
	release(t, all)
	must(t, receive(t, "Resize", done))
	wantLimit(t, s, 3)
}

// The directory is made anew, with another limit of the same version, before the transaction of a Resize arrives that raises the
// limit. It would lower that limit, of which all leases are held.
func TestLateRaising(t *testing.T) {
	dir := testserver.Path(t)
	persistent(t, dir, "")
	s := newSem(t, connect(t), dir, 3)
	release(t, take(t, s, 1))
	proxy := testserver.Proxy(t)
	set := proxy.HoldRequest(zktest.On(zktest.OpMulti, dir+"/"))
	done := make(chan error, 1)
	resizer := newSem(t, behind(t, proxy), dir, 3)
	go func() { done <- resizer.Resize(patient(t), 5) }()
	receive(t, "the transaction of Resize", set.Hit())
	for _, name := range testserver.Children(t, dir) {
		testserver.Delete(t, dir, name)
	}
	testserver.Delete(t, dir)
	persistent(t, dir, "")
	other := newSem(t, connect(t), dir, 9)
	all := take(t, other, 9)
	set.Release()
	testserver.WaitChildren(t, dir, 2) // Resize waits for the four that are to go
	underWay(t, done, "nine are held of nine")
	wantLimit(t, other, 9)
	release(t, all)
	must(t, receive(t, "Resize", done))
	wantLimit(t, s, 5)
}

// The session of a Resize has read the limit before, and has not heard yet that the directory was made anew since, with another
// limit of the same version. Resize does not go by what it remembers.
func TestRaisingByAnOldLimit(t *testing.T) {
	dir := testserver.Path(t)
	persistent(t, dir, "")
	proxy := testserver.Proxy(t)
	s := newSem(t, behind(t, proxy), dir, 3)
	for range 2 {
		release(t, take(t, s, 1)) // the first sets the limit, and the second watches it
	}
	read := proxy.HoldReply(zktest.On(zktest.OpGetData, dir))
	news := proxy.HoldReply(zktest.On(zktest.OpNotification, dir))
	done := make(chan error, 1)
	go func() { done <- s.Resize(patient(t), 5) }()
	receive(t, "the limit", read.Hit())
	testserver.Delete(t, dir)
	persistent(t, dir, "")
	other := newSem(t, connect(t), dir, 9)
	all := take(t, other, 9)
	proxy.ResetRequests()
	read.Release()
	receive(t, "the news of the directory", news.Hit())
	zktest.Eventually(t, testserver.Patience, "the node of Resize", func() bool { return len(testserver.Children(t, dir)) == 2 })
	if n := proxy.Count(zktest.On(zktest.OpGetData, dir)); n != 0 {
		t.Errorf("Resize has read the limit %d times with its node", n)
	}
	news.Release()
	waitFor := func() bool {
		select {
		case err := <-done:
			t.Fatalf("Resize returned (%v), though nine are held of nine", err)
		default:
		}
		return slices.ContainsFunc(testserver.Children(t, dir), func(name string) bool { return strings.Contains(name, "-x4-lease-") })
	}
	zktest.Eventually(t, testserver.Patience, "Resize to wait for the four that are to go", waitFor)
	wantLimit(t, other, 9)
	release(t, all)
	must(t, receive(t, "Resize", done))
	wantLimit(t, s, 5)
}

// slow is a contender behind a proxy, which can cut its network.
type slow struct {
	*call
	proxy    *zktest.Proxy
	watching chan string // gets a node ahead, at the beginning of each wait
}

// slowly begins an AcquireN and returns when it waits for another contender. No request is under way then. A reply that a
// cut holds back could otherwise let it in by a limit of the past.
func slowly(t *testing.T, dir string, limit, n int) *slow {
	t.Helper()
	s := &slow{proxy: testserver.Proxy(t), watching: make(chan string, 100)}
	m := testserver.Connect(t, s.proxy.Addr(), session.WithTimeout(long), session.WithTrace(session.Trace{
		Watch: func(ctx context.Context, w session.WatchInfo) (context.Context, func(error)) {
			s.watching <- w.Path
			return ctx, nil
		},
	}))
	s.call = begin(t, newSem(t, m, dir, limit), n)
	receive(t, "the first wait", s.watching)
	return s
}
