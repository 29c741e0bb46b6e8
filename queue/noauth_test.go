package queue_test

import (
	"log/slog"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// dirWithout makes a directory without a permission.
func dirWithout(t *testing.T, perm int32) string {
	t.Helper()
	dir := testserver.Path(t)
	if _, err := testserver.Admin(t).Create(dir, nil, 0, zk.WorldACL(zk.PermAll&^perm)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// waitStat waits for a number of children in a directory that may not be listed. It asks for the ACL, which
// comes with a stat and does not need READ.
func waitStat(t *testing.T, dir string, children int32) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "the children", func() bool {
		_, stat, err := testserver.Admin(t).GetACL(dir)
		return err == nil && stat.NumChildren == children
	})
}

// A request that the server refuses fails at once, and is not sent again. No node stays.
func TestNoAuthToAcquire(t *testing.T) {
	for _, c := range []struct {
		what string
		perm int32
		op   zktest.Op
		most int // requests of op
	}{
		{"create", zk.PermCreate, zktest.OpCreate, 1},
		{"read", zk.PermRead, zktest.OpGetChildren2, 2}, // one with the create, one after it
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := dirWithout(t, c.perm)
			q, proxy, _ := proxied(t, dir)
			_, err := q.Acquire(patient(t), ask)
			mustBe(t, err, zk.ErrNoAuth)
			waitStat(t, dir, 0)
			if n := proxy.Count(ofContenders(dir, c.op)); n > c.most {
				t.Errorf("%d requests %v", n, c.op)
			}
		})
	}
}

// Nodes may be hidden in a directory that may be listed.
func TestNoAuthToReadContenders(t *testing.T) {
	dir := persistentDir(t)
	l := acquire(t, client(t, dir, session.WithACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...)))
	all, err := client(t, dir).Contenders(patient(t), mutex)
	mustBe(t, err, zk.ErrNoAuth)
	if all != nil {
		t.Errorf("%+v beside the error", all)
	}
	release(t, l)
}

// A release that the server refuses returns the error, and the lease is over. The delete is repeated, so the next contender gets
// the lock when the permission is back, in the same session. The log says it once.
func TestNoAuthToRelease(t *testing.T) {
	dir := dirWithout(t, zk.PermDelete)
	var log warnings
	q, proxy, m := proxied(t, dir, session.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	l, s := acquire(t, q), testserver.Session(t, m)
	next := begin(t, client(t, dir), ask)
	waitStat(t, dir, 2)
	mustBe(t, l.Release(patient(t)), zk.ErrNoAuth)
	mustBeReleased(t, l)
	zktest.Eventually(t, testserver.Patience, "a second try", func() bool {
		return proxy.Count(ofContenders(dir, zktest.OpDelete)) >= 2 && len(log.with("refuses to remove")) > 0
	})
	next.waits(t, "the node is still there")
	_, err := testserver.Admin(t).SetACL(dir, zk.WorldACL(zk.PermAll), -1)
	mustBe(t, err, nil)
	release(t, next.get(t))
	zktest.Eventually(t, testserver.Patience, "the line in the log", func() bool { return len(log.with("removed a node that it had refused")) == 1 })
	if n := len(log.with("refuses to remove")); n != 1 {
		t.Errorf("%d lines about the refusal", n)
	}
	if now := testserver.Session(t, m); now != s || s.Err() != nil {
		t.Errorf("session %v, was %v: %v", now.ID(), s.ID(), s.Err())
	}
	testserver.WaitChildren(t, dir, 0)
}

// Nodes that may not be read cannot be watched. A waiter gets the error. A holder that did not have to
// wait needs no watch, and keeps the lock, but has no token.
func TestNoAuthToWatch(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, _ := proxied(t, dir, session.WithACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...))
	l := acquire(t, q)
	_, err := l.Token(patient(t))
	mustBe(t, err, zk.ErrNoAuth)
	if err := l.Err(); err != nil {
		t.Error(err)
	}
	proxy.ResetRequests()
	_, err = q.Acquire(patient(t), ask)
	mustBe(t, err, zk.ErrNoAuth)
	testserver.WaitChildren(t, dir, 1)
	if n := proxy.Count(ofContenders(dir, zktest.OpGetData)); n > 2 {
		t.Errorf("%d reads", n)
	}
	release(t, l)
	testserver.WaitChildren(t, dir, 0)
}
