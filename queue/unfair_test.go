package queue_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

var (
	unfair    = &queue.Kind{Name: "unfair", Prefixes: []string{queue.PrefixUnfair}, Unfair: true}
	askUnfair = queue.Request{Kind: unfair}
)

func seize(tb testing.TB, q *queue.Queue) *queue.Lease {
	tb.Helper()
	l, err := q.Acquire(patient(tb), askUnfair)
	mustBe(tb, err, nil)
	return l
}

// waitsFor begins an Acquire, and returns when it reads the holder's node.
func waitsFor(tb testing.TB, q *queue.Queue, p *zktest.Proxy) *call {
	tb.Helper()
	return beginUntil(tb, q, p, zktest.OpGetData)
}

// settled waits until nothing of an earlier hold or attempt of the session is under way, which the
// create of the next one shows. It returns the next one.
func settled(tb testing.TB, q *queue.Queue, p *zktest.Proxy) *call {
	tb.Helper()
	return beginUntil(tb, q, p, zktest.OpCreate)
}

// beginUntil begins an Acquire, and returns when the client has sent the request for its node.
func beginUntil(tb testing.TB, q *queue.Queue, p *zktest.Proxy, op zktest.Op) *call {
	tb.Helper()
	before := p.Count(ofContenders(q.Path(), op))
	c := begin(tb, q, askUnfair)
	zktest.Eventually(tb, testserver.Patience, "a "+op.String(), func() bool {
		return p.Count(ofContenders(q.Path(), op)) > before
	})
	return c
}

// The connection breaks at the n-th request in the life of a lease, or at the first request of
// each kind. The lock is obtained all the same, with one node, and is free afterwards, within one
// session.
func TestUnfairCutAtEachStep(t *testing.T) {
	faults := map[string]func(*zktest.Proxy, zktest.Match) *zktest.Fault{
		"before": (*zktest.Proxy).CutBefore,
		"after":  (*zktest.Proxy).CutAfterCommit,
	}
	for when, arm := range faults {
		for _, contended := range []bool{false, true} {
			cut := func(name string, mustHit bool, match func(dir string) zktest.Match) {
				t.Run(fmt.Sprintf("%s/contended=%v/%s", when, contended, name), func(t *testing.T) {
					t.Parallel()
					testUnfairCut(t, contended, mustHit, func(p *zktest.Proxy, dir string) *zktest.Fault { return arm(p, match(dir)) })
				})
			}
			for n := 1; n <= 6; n++ {
				cut(fmt.Sprint(n), false, func(dir string) zktest.Match { return nth(n, inDir(dir)) })
			}
			for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpGetChildren2, zktest.OpGetData, zktest.OpDelete} {
				cut(op.String(), true, func(dir string) zktest.Match { return ofContenders(dir, op) })
			}
		}
	}
}

func testUnfairCut(t *testing.T, contended, mustHit bool, arm func(*zktest.Proxy, string) *zktest.Fault) {
	dir := persistentDir(t)
	q, proxy, m := proxied(t, dir, session.WithMaxNodes(1))
	other := client(t, dir)
	before := testserver.Session(t, m).ID()
	var ahead *queue.Lease
	if contended {
		ahead = seize(t, other)
	}
	fault := arm(proxy, dir)
	c := begin(t, q, askUnfair)
	if contended {
		zktest.Eventually(t, testserver.Patience, "a create", func() bool {
			return proxy.Count(ofContenders(dir, zktest.OpCreate)) > 0
		})
		c.waits(t, "another holds")
		release(t, ahead)
	}
	l := c.get(t)
	_, stat, err := testserver.Admin(t).Get(l.Path())
	mustBe(t, err, nil)
	if stat.EphemeralOwner != before || tokenOf(t, l) != stat.Czxid {
		t.Errorf("the lease's node is %+v, its token %d", stat, tokenOf(t, l))
	}
	onlyChild(t, l)
	_, err = testserver.Session(t, m).Create(patient(t), dir+"-another", nil, session.Ephemeral)
	mustBe(t, err, session.ErrTooManyNodes)
	release(t, l)
	if mustHit {
		await(t, fault.Hit(), "the fault")
	}
	fault.Release() // where there were fewer requests than that
	testserver.WaitChildren(t, dir, 0)
	release(t, seize(t, other))
	release(t, seize(t, q)) // there is room for its node
	if testserver.Session(t, m).ID() != before {
		t.Error("not in the same session")
	}
}

// A release whose reply is lost takes effect once, and another contender comes in between.
func TestUnfairReleaseSparesTheNext(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, _ := proxied(t, dir)
	l := seize(t, q)
	tokenOf(t, l)
	proxy.Refuse(true)
	cut := proxy.CutAfterCommit(ofContenders(dir, zktest.OpDelete))
	ctx, cancel := context.WithCancel(patient(t))
	go func() {
		<-cut.Hit()
		cancel()
	}()
	mustBe(t, l.Release(ctx), queue.ErrReleasePending)
	next := seize(t, client(t, dir))
	proxy.Heal()
	c := waitsFor(t, q, proxy)
	c.waits(t, "the next holds")
	testserver.WaitChildren(t, dir, 1)
	onlyChild(t, next)
	if _, stat, err := testserver.Admin(t).Get(next.Path()); err != nil || stat.Czxid != tokenOf(t, next) {
		t.Errorf("%+v, %v", stat, err)
	}
	release(t, next)
	release(t, c.get(t))
}

// The operator deletes the holder's node and another contender comes in, while the holder is
// connected or not. The holder finds out, and its release, early or late, leaves the other alone.
func TestUnfairNodeOfAnother(t *testing.T) {
	for _, c := range []struct {
		what          string
		away, release bool // the holder is disconnected, and releases before it is connected again
	}{
		{"connected", false, false},
		{"away", true, false},
		{"away, and released", true, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := persistentDir(t)
			q, proxy, m := proxied(t, dir)
			other := client(t, dir)
			l := seize(t, q)
			tokenOf(t, l)
			if c.away {
				proxy.Refuse(true)
				proxy.Disconnect()
				zktest.Eventually(t, testserver.Patience, "the disconnection", func() bool { return m.State() == session.Suspended })
			}
			testserver.Delete(t, l.Path())
			next := seize(t, other)
			if c.release {
				ended, cancel := context.WithCancel(context.Background())
				cancel()
				mustBe(t, l.Release(ended), queue.ErrReleasePending)
			}
			proxy.Heal()
			await(t, l.Done(), "the holder to be told")
			if !c.release {
				mustBe(t, l.Err(), session.ErrLost)
				mustBe(t, l.Release(patient(t)), session.ErrLost)
			}
			after := waitsFor(t, q, proxy)
			after.waits(t, "another holds")
			testserver.WaitChildren(t, dir, 1)
			onlyChild(t, next)
			release(t, next)
			release(t, after.get(t))
		})
	}
}

// The session of a holder, or of a waiter, expires.
func TestUnfairExpired(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, m := proxied(t, dir)
	l := seize(t, q)
	inside, cancel := l.Context(context.Background())
	defer cancel()
	other, otherProxy, otherM := proxied(t, dir)
	next := waitsFor(t, other, otherProxy)
	expire(t, otherProxy, otherM)
	next.waits(t, "the first holds")
	expire(t, proxy, m)
	n := next.get(t)
	mustBeLost(t, l, inside)
	mustBe(t, l.Release(patient(t)), session.ErrLost)
	onlyChild(t, n)
	release(t, n)
	release(t, seize(t, q))
	testserver.WaitChildren(t, dir, 0)
}

// A call that is given up leaves no node: while it waits for another process or for its own, and
// while its create is under way.
func TestUnfairCancelled(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, _ := proxied(t, dir)
	l := seize(t, client(t, dir))
	first := waitsFor(t, q, proxy)
	second := begin(t, q, askUnfair)
	second.cancel()
	second.wait(t)
	mustBe(t, second.err, context.Canceled)
	first.cancel()
	first.wait(t)
	mustBe(t, first.err, context.Canceled)
	release(t, l)
	testserver.WaitChildren(t, dir, 0)

	for what, hold := range map[string]func(*zktest.Proxy, zktest.Match) *zktest.Fault{
		"request": (*zktest.Proxy).HoldRequest,
		"reply":   (*zktest.Proxy).HoldReply,
	} {
		fault := hold(proxy, ofContenders(dir, zktest.OpCreate))
		c := begin(t, q, askUnfair)
		await(t, fault.Hit(), what)
		c.cancel()
		c.wait(t)
		mustBe(t, c.err, context.Canceled)
		fault.Release()
		release(t, settled(t, q, proxy).get(t))
		testserver.WaitChildren(t, dir, 0)
	}
}

// TryAcquire returns ErrBusy behind a holder, of this session or another. Otherwise it takes the lock,
// even right after a release.
func TestUnfairTry(t *testing.T) {
	dir := testserver.Path(t) // whose parents are made
	q, other := client(t, dir), client(t, dir)
	for range 20 {
		l, err := q.TryAcquire(patient(t), askUnfair)
		mustBe(t, err, nil)
		for _, who := range []*queue.Queue{q, other} {
			_, err = who.TryAcquire(patient(t), askUnfair)
			mustBe(t, err, queue.ErrBusy)
		}
		all, err := other.Contenders(patient(t), unfair)
		if err != nil || len(all) != 1 || !all[0].Holder || all[0].Path != l.Path() {
			t.Errorf("contenders %+v, %v", all, err)
		}
		release(t, l)
	}
}

// A change of the holder's data wakes the waiters, and grants nothing. The holder can be asked to
// release, and can release, although its node has other data than it set.
func TestUnfairRevoked(t *testing.T) {
	dir := persistentDir(t)
	asked := make(chan *queue.Lease, 10)
	r := askUnfair
	r.Revoked = func(l *queue.Lease) { asked <- l }
	l, err := client(t, dir).Acquire(patient(t), r)
	mustBe(t, err, nil)
	watching := make(chan struct{}, 10)
	q, proxy, _ := proxied(t, dir, watchHook(watching))
	c := waitsFor(t, q, proxy)
	await(t, watching, "the waiter to watch") // its get can be overtaken by the set
	before := proxy.Count(ofContenders(dir, zktest.OpGetData))
	_, err = testserver.Admin(t).Set(l.Path(), []byte(queue.RevokeMessage), -1)
	mustBe(t, err, nil)
	if got := <-asked; got != l {
		t.Errorf("asked for %s", got.Path())
	}
	zktest.Eventually(t, testserver.Patience, "the waiter to watch again", func() bool {
		return proxy.Count(ofContenders(dir, zktest.OpGetData)) > before
	})
	c.waits(t, "another holds")
	onlyChild(t, l)
	release(t, l)
	release(t, c.get(t))
}

// A write with the guard of an unfair lease happens only while the lease is held. The token is higher each time.
func TestUnfairGuard(t *testing.T) {
	dir := persistentDir(t)
	target := put(t, testserver.Path(t), "", "old", 0)
	q, _, m := proxied(t, dir)
	l := seize(t, q)
	token := tokenOf(t, l)
	write := func() error {
		_, err := testserver.Session(t, m).Multi(patient(t),
			l.Guard(), &zk.SetDataRequest{Path: target, Data: []byte("new"), Version: -1})
		return err
	}
	mustBe(t, write(), nil)
	release(t, l)
	mustBe(t, write(), zk.ErrNoNode)
	next := seize(t, client(t, dir))
	mustBe(t, write(), zk.ErrNoNode)
	if tokenOf(t, next) <= token {
		t.Errorf("token %d after %d", tokenOf(t, next), token)
	}
	release(t, next)
}

// Requests that an unfair kind cannot have are refused before any I/O.
func TestUnfairInvalid(t *testing.T) {
	always := func(queue.Node) queue.Policy { return queue.Policy{} }
	q := client(t, testserver.Path(t))
	for what, r := range map[string]queue.Request{
		"two prefixes":  {Kind: &queue.Kind{Prefixes: []string{"a-", "b-"}, Unfair: true}},
		"a policy":      {Kind: &queue.Kind{Prefixes: []string{"a-"}, Unfair: true, Policy: always}},
		"a weight":      {Kind: unfair, Weight: 2},
		"neither":       {Kind: &queue.Kind{Prefixes: []string{"a-"}}},
		"no prefix":     {Kind: &queue.Kind{Unfair: true}},
		"a bad prefix":  {Kind: &queue.Kind{Prefixes: []string{"a"}, Unfair: true}},
		"configuration": {Kind: configured(&queue.Kind{Prefixes: []string{"a-"}, Unfair: true}, "1", strict)},
	} {
		if _, err := q.Acquire(patient(t), r); err == nil {
			t.Error(what)
		} else {
			mustBe(t, err, session.ErrInvalid)
		}
	}
	l := acquire(t, q)
	_, err := l.Beside(patient(t), askUnfair)
	mustBe(t, err, session.ErrInvalid)
	release(t, l)
}

// An operator deletes the node of a contender before its listing, and another contender comes in.
func TestUnfairDeletedBeforeListing(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, _ := proxied(t, dir)
	listing := proxy.HoldRequest(ofContenders(dir, zktest.OpGetChildren2))
	c := begin(t, q, askUnfair)
	await(t, listing.Hit(), "the listing")
	testserver.WaitChildren(t, dir, 1)
	testserver.Delete(t, dir, testserver.Children(t, dir)[0])
	next := seize(t, client(t, dir))
	listing.Release()
	zktest.Eventually(t, testserver.Patience, "another create", func() bool {
		return proxy.Count(ofContenders(dir, zktest.OpCreate)) > 1
	})
	c.waits(t, "another holds")
	release(t, next)
	release(t, c.get(t))
}

// Many goroutines of a few processes take an unfair lock again and again, and all get it.
func TestUnfairHerd(t *testing.T) {
	const processes, goroutines, rounds = 3, 20, 3
	dir := persistentDir(t)
	var all sync.WaitGroup
	var inside atomic.Int32
	for range processes {
		q := client(t, dir)
		for range goroutines {
			all.Go(func() {
				for range rounds {
					l, err := q.Acquire(patient(t), askUnfair)
					if err != nil {
						t.Error(err)
						return
					}
					if n := inside.Add(1); n > 1 {
						t.Errorf("%d hold", n)
					}
					inside.Add(-1)
					if err := l.Release(patient(t)); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	testserver.WaitChildren(t, dir, 0)
}

// The goroutines that wait for an unfair lock by one Queue take turns: one of them enters, and each one after that enters when
// its turn has come.
func TestUnfairTakesTurns(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		other := testserver.Connect(t, "zookeeper:2181", session.WithDialer(server.Dialer()),
			session.WithTimeout(long), session.WithLogger(slog.New(slog.DiscardHandler)))
		const goroutines = 20
		held := seize(t, on(t, other, "/locks/one"))
		q := on(t, m, "/locks/one")
		server.ResetRequests()
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() { release(t, seize(t, q)) })
		}
		synctest.Wait()
		if n := server.Count(zktest.Any(zktest.OpCreate)); n != 1 {
			t.Errorf("%d of %d goroutines have entered", n, goroutines)
		}
		release(t, held)
		all.Wait()
		// Each behind the first can meet the node of the one before it, which is about to go.
		if n := server.Count(zktest.Any(zktest.OpCreate)); n > 2*goroutines+1 {
			t.Errorf("%d creates for %d holds", n, goroutines)
		}
	})
}
