package queue_test

import (
	"path"
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

func TestNoAuthToList(t *testing.T) {
	q, proxy, _ := proxied(t, dirWithout(t, zk.PermRead))
	_, err := q.Contenders(patient(t), mutex)
	mustBe(t, err, zk.ErrNoAuth)
	if n := proxy.Count(inDir(q.Path())); n != 1 {
		t.Errorf("%d requests", n)
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

// The server refuses to create the parents.
func TestNoAuthForParents(t *testing.T) {
	dir := path.Join(dirWithout(t, zk.PermCreate), "deep", "er")
	q, proxy, _ := proxied(t, dir)
	_, err := q.Acquire(patient(t), ask)
	mustBe(t, err, zk.ErrNoAuth)
	if n := proxy.Count(zktest.Any(zktest.OpCreateContainer)); n > 2 {
		t.Errorf("%d creates of parents", n)
	}
}

// A release that the server refuses returns the error. The lease is over all the same, and the node
// goes with the session.
func TestNoAuthToRelease(t *testing.T) {
	dir := dirWithout(t, zk.PermDelete)
	q, proxy, m := proxied(t, dir)
	l := acquire(t, q)
	mustBe(t, l.Release(patient(t)), zk.ErrNoAuth)
	mustBeReleased(t, l)
	if n := proxy.Count(ofContenders(dir, zktest.OpDelete)); n != 1 {
		t.Errorf("%d deletes", n)
	}
	waitStat(t, dir, 1)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	waitStat(t, dir, 0)
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
