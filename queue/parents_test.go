package queue_test

import (
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// The directory vanishes between its creation and the create in it. It is created again.
func TestParentVanishes(t *testing.T) {
	dir := path.Join(testserver.Path(t), "deep", "er")
	q, proxy, _ := proxied(t, dir)
	// The first create finds no directory, the second is after it was made.
	hold := proxy.HoldRequest(nth(2, ofContenders(dir, zktest.OpCreate)))
	c := begin(t, q, ask)
	await(t, hold.Hit(), "the create")
	var all []any // the directory and its parents, before the server deletes empty containers
	for d := dir; d != "/"; d = path.Dir(d) {
		all = append(all, &zk.DeleteRequest{Path: d, Version: -1})
	}
	if _, err := testserver.Admin(t).Multi(all...); err != nil {
		t.Fatal(err)
	}
	hold.Release()
	l := c.get(t)
	onlyChild(t, l)
	release(t, l)
}

// The connection breaks at each request that creates the parents.
func TestParentsCut(t *testing.T) {
	makes := zktest.OpCreateContainer
	if !testserver.HasContainers(t) {
		makes = zktest.OpCreate
	}
	for _, arm := range []func(*zktest.Proxy, zktest.Match) *zktest.Fault{
		(*zktest.Proxy).CutBefore, (*zktest.Proxy).CutAfterCommit,
	} {
		for n := 1; n <= 3; n++ {
			dir := path.Join(testserver.Path(t), "deep")
			q, proxy, _ := proxied(t, dir)
			fault := arm(proxy, nth(n, zktest.Any(makes)))
			l := acquire(t, q)
			await(t, fault.Hit(), "the fault")
			onlyChild(t, l)
			release(t, l)
		}
	}
}

// Many contenders come at once while the parents do not exist.
func TestParentsRace(t *testing.T) {
	dir := path.Join(testserver.Path(t), "deep", "er")
	var wg sync.WaitGroup
	for range 4 {
		q := client(t, dir)
		for range 3 {
			wg.Go(func() {
				l, err := q.Acquire(patient(t), ask)
				if err != nil {
					t.Error(err)
					return
				}
				if err := l.Release(patient(t)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	testserver.WaitChildren(t, dir, 0)
}

// The directory is a container: the server deletes it when it is empty. On a server without containers it
// stays.
func TestDirectoryIsReaped(t *testing.T) {
	longtest.Only(t)
	dir := testserver.Path(t)
	release(t, acquire(t, client(t, dir)))
	if !testserver.HasContainers(t) {
		testserver.WaitChildren(t, dir, 0)
		return
	}
	zktest.Eventually(t, testserver.Patience, "the directory to be reaped", func() bool {
		ok, _, err := testserver.Admin(t).Exists(dir)
		return err == nil && !ok
	})
}

// Fencing tokens grow from holder to holder, even if the directory was deleted and its sequence numbers
// start again, and whether or not the holder had to wait.
func TestTokenGrows(t *testing.T) {
	dir := testserver.Path(t)
	a, b := client(t, dir), client(t, dir)
	var last int64
	grown := func(l *queue.Lease) {
		t.Helper()
		token, err := l.Token(patient(t))
		if err != nil {
			t.Fatal(err)
		}
		_, stat, err := testserver.Admin(t).Get(l.Path())
		if err != nil || stat.Czxid != token {
			t.Errorf("token %d, czxid %v: %v", token, stat, err)
		}
		if token <= last {
			t.Errorf("token %d after %d", token, last)
		}
		last = token
	}
	for round := range 3 {
		first := acquire(t, a)
		if !strings.HasSuffix(first.Path(), "0000000000") {
			t.Fatalf("round %d: the sequence has not begun again: %s", round, first.Path())
		}
		second := enter(t, b, 2)
		grown(first)
		release(t, first)
		l := second.get(t)
		grown(l)
		release(t, l)
		if err := testserver.Admin(t).Delete(dir, -1); err != nil && err != zk.ErrNoNode { // as the reaper does
			t.Fatal(err)
		}
	}
}

// A lease that has ended still returns its token if it knew it. If it did not, Token does not hang.
func TestTokenAfterEnd(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, _ := proxied(t, dir)
	l := acquire(t, q)
	want, err := l.Token(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	release(t, l)
	if got, err := l.Token(patient(t)); got != want || err != nil {
		t.Errorf("Token after release: %d, %v; want %d", got, err, want)
	}
	hold := proxy.HoldReply(ofContenders(dir, zktest.OpGetData))
	l = acquire(t, q)
	await(t, hold.Hit(), "the get")
	done := make(chan error)
	go func() {
		_, err := l.Token(patient(t))
		done <- err
	}()
	go hold.Release() // the release needs it
	_ = l.Release(patient(t))
	if err := <-done; err != nil { // known in the end, or not: both are answers
		mustBe(t, err, queue.ErrReleased)
	}
}
