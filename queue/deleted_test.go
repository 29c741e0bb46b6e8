package queue_test

import (
	"context"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// newest returns the name of the last child.
func newest(t *testing.T, dir string) string {
	t.Helper()
	names := testserver.Children(t, dir)
	return slices.MaxFunc(names, func(a, b string) int {
		// Ten digits, all of one length: text order will do.
		if a[len(a)-10:] < b[len(b)-10:] {
			return -1
		}
		return 1
	})
}

// An operator deletes a holder's node. The holder finds out, and the next contender enters.
func TestHolderDeleted(t *testing.T) {
	dir := persistentDir(t)
	l := acquire(t, client(t, dir, session.WithTimeout(time.Minute)))
	inside, cancel := l.Context(context.Background())
	defer cancel()
	if _, err := l.Token(patient(t)); err != nil { // its watch is set
		t.Fatal(err)
	}
	next := enter(t, client(t, dir), 2)
	testserver.Delete(t, l.Path())
	select {
	case <-l.Done():
	case <-time.After(testserver.Patience): // less than the session timeout
		t.Fatal("the holder was not told")
	}
	mustBeLost(t, l, inside)
	n := next.get(t)
	mustBe(t, l.Release(patient(t)), session.ErrLost)
	onlyChild(t, n)
	release(t, n)
}

// The same, for a holder that has waited for the lock, and for one whose watch was lost in between.
func TestHolderDeletedAfterReconnect(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, m := proxied(t, dir, session.WithTimeout(time.Minute))
	first := acquire(t, client(t, dir))
	w := enter(t, q, 2)
	release(t, first)
	l := w.get(t)
	before := testserver.Session(t, m).ID()
	proxy.ResetRequests()
	proxy.Disconnect()
	zktest.Eventually(t, testserver.Patience, "the node to be watched again", func() bool {
		return proxy.Count(zktest.On(zktest.OpGetData, l.Path())) > 0
	})
	testserver.Delete(t, l.Path())
	select {
	case <-l.Done():
	case <-time.After(testserver.Patience): // less than the session timeout
		t.Fatal("the holder was not told")
	}
	mustBe(t, l.Err(), session.ErrLost)
	if testserver.Session(t, m).ID() != before {
		t.Error("not in the same session")
	}
}

// The node is deleted while its holder is disconnected.
func TestHolderDeletedWhileDisconnected(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, m := proxied(t, dir)
	l := acquire(t, q)
	before := testserver.Session(t, m).ID()
	proxy.Refuse(true)
	proxy.Disconnect()
	testserver.Delete(t, l.Path())
	proxy.Heal()
	await(t, l.Done(), "the holder to be told")
	mustBe(t, l.Err(), session.ErrLost)
	if testserver.Session(t, m).ID() != before {
		t.Error("not in the same session")
	}
}

// An operator deletes a waiter's node. That is not a grant: the waiter enters again.
func TestWaiterDeleted(t *testing.T) {
	dir := persistentDir(t)
	holder := acquire(t, client(t, dir))
	w := enter(t, client(t, dir), 2)
	for range 3 {
		old := newest(t, dir)
		testserver.Delete(t, dir, old)
		zktest.Eventually(t, testserver.Patience, "the waiter to come again", func() bool {
			return len(testserver.Children(t, dir)) == 2 && newest(t, dir) != old
		})
		w.waits(t, "the first holds")
	}
	other := enter(t, client(t, dir), 3)
	release(t, holder)
	l := w.get(t)
	other.waits(t, "the waiter is ahead")
	if got := path.Base(l.Path()); !slices.Contains(testserver.Children(t, dir), got) {
		t.Errorf("the lease's node %s is not there", got)
	}
	release(t, l)
	release(t, other.get(t))
}

// The waiter's node is deleted, then its predecessor leaves, and the waiter receives both events at
// once. It must not take the second for a grant.
func TestWaiterDeletedThenPredecessorLeaves(t *testing.T) {
	dir := persistentDir(t)
	holder := acquire(t, client(t, dir))
	watching := make(chan struct{}, 10)
	q, proxy, _ := proxied(t, dir, watchHook(watching))
	w := enter(t, q, 2)
	await(t, watching, "the waiter to watch")
	behind := enter(t, client(t, dir), 3)
	hold := proxy.HoldReply(zktest.Any(zktest.OpNotification))
	names := testserver.Children(t, dir)
	slices.SortFunc(names, func(a, b string) int { return int(a[len(a)-1]) - int(b[len(b)-1]) })
	testserver.Delete(t, dir, names[1])
	await(t, hold.Hit(), "the event")
	release(t, holder)
	b := behind.get(t) // the next in the order
	hold.Release()
	testserver.WaitChildren(t, dir, 2)
	w.waits(t, "the one behind has the lock now")
	if err := b.Err(); err != nil {
		t.Error(err)
	}
	release(t, b)
	l := w.get(t)
	onlyChild(t, l)
	release(t, l)
}

// watchHook has watching receive each time when a contender waits and its watches are set.
func watchHook(watching chan<- struct{}) session.Option {
	var mu sync.Mutex
	waits, gets := false, 0
	change := func(f func()) {
		mu.Lock()
		defer mu.Unlock()
		if f(); waits && gets == 0 {
			waits = false
			watching <- struct{}{}
		}
	}
	return session.WithTrace(session.Trace{
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if r.Op != "getData" {
				return ctx, nil
			}
			change(func() { gets++ })
			return ctx, func(error) { change(func() { gets-- }) }
		},
		Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
			change(func() { waits = true })
			return ctx, nil
		},
	})
}

// A contender in the middle goes, in each way. The contender behind it neither enters early nor
// sleeps on.
func TestMiddleWaiterDies(t *testing.T) {
	for _, c := range []struct {
		what string
		die  func(*testing.T, *call, *zktest.Proxy, *session.Manager)
	}{
		{"cancelled", func(_ *testing.T, w *call, _ *zktest.Proxy, _ *session.Manager) { w.cancel() }},
		{"closed", func(_ *testing.T, _ *call, _ *zktest.Proxy, m *session.Manager) { _ = m.Close() }},
		{"expired", func(t *testing.T, w *call, p *zktest.Proxy, m *session.Manager) {
			p.Refuse(true) // it must not come back
			expire(t, p, m)
			w.cancel()
			w.wait(t)
			p.Heal()
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := persistentDir(t)
			first := acquire(t, client(t, dir))
			q, proxy, m := proxied(t, dir)
			second := enter(t, client(t, dir), 2)
			middle := enter(t, q, 3)
			watching := make(chan struct{}, 10)
			last := enter(t, client(t, dir, watchHook(watching)), 4)
			await(t, watching, "the last to watch two of three")
			c.die(t, middle, proxy, m)
			testserver.WaitChildren(t, dir, 3)
			await(t, watching, "the last to watch the two that are left")
			last.waits(t, "the first holds")
			release(t, first)
			s := second.get(t)
			last.waits(t, "the second holds")
			release(t, s)
			l := last.get(t)
			onlyChild(t, l)
			release(t, l)
		})
	}
}

// The holder's data is changed. The waiter does not enter, and watches on.
func TestPredecessorChanged(t *testing.T) {
	dir := persistentDir(t)
	first := acquire(t, client(t, dir))
	watching := make(chan struct{}, 10)
	w := enter(t, client(t, dir, watchHook(watching)), 2)
	for range 3 {
		await(t, watching, "the waiter to watch")
		if _, err := testserver.Admin(t).Set(first.Path(), []byte("x"), -1); err != nil {
			t.Fatal(err)
		}
	}
	await(t, watching, "the waiter to watch again")
	w.waits(t, "the first holds")
	release(t, first)
	l := w.get(t)
	onlyChild(t, l)
	release(t, l)
}
