package security

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// checkACLs compares the ACL of every node from root on, of which there must be some with an
// owner.
func checkACLs(t *testing.T, c *zk.Conn, root string, contenders int) {
	t.Helper()
	all := tree(t, c, root)
	for _, p := range all {
		got, stat, err := c.GetACL(p)
		if errors.Is(err, zk.ErrNoNode) {
			continue // it left meanwhile, as a gate does behind the grant
		}
		expect.NoError(t, err)
		if diff := cmp.Diff(acl, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p, diff)
		}
		if session := stat.EphemeralOwner; session > 0 {
			contenders--
		}
	}
	if contenders != 0 {
		t.Errorf("%d contenders fewer than there should be in %q", contenders, all)
	}
}

// Every node that a lock makes has the ACL: its directory, all directories above it, and the nodes of
// holders and waiters.
func TestACLOfEveryNode(t *testing.T) {
	longtest.InCI(t)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			m := testserver.Connect(t, testserver.Server(t).ConnectString(), owner()...)
			root := testserver.Path(t)
			l, err := k.open(m, root+"/deep/er/lock")
			expect.NoError(t, err)
			_, err = l.Acquire(expect.Patient(t))
			expect.NoError(t, err)
			checkACLs(t, admin(t), root, 1)
		})
	}
	t.Run("waiter", func(t *testing.T) {
		m := testserver.Connect(t, testserver.Server(t).ConnectString(), owner()...)
		mx, err := zklock.New(m, testserver.Path(t))
		expect.NoError(t, err)
		_, err = mx.Acquire(expect.Patient(t))
		expect.NoError(t, err)
		ctx, cancel := context.WithCancel(expect.Patient(t))
		waited := make(chan error, 1)
		go func() { _, err := mx.Acquire(ctx); waited <- err }()
		c := admin(t)
		zktest.Eventually(t, testserver.Patience, "the waiter", func() bool { return len(tree(t, c, mx.Path())) == 3 })
		checkACLs(t, c, mx.Path(), 2)
		cancel()
		expect.Match(t, "the waiter", <-waited, context.Canceled)
	})
	t.Run("downgrade", func(t *testing.T) {
		m := testserver.Connect(t, testserver.Server(t).ConnectString(), owner()...)
		rw, err := rwlock.New(m, testserver.Path(t))
		expect.NoError(t, err)
		ctx := queue.WithOwner(expect.Patient(t))
		expect.NoError(t, rw.Lock(ctx))
		expect.NoError(t, rw.RLock(ctx))
		checkACLs(t, admin(t), rw.Path(), 2)
	})
	t.Run("resized semaphore", func(t *testing.T) {
		m := testserver.Connect(t, testserver.Server(t).ConnectString(), owner()...)
		root := testserver.Path(t)
		s, err := semaphore.New(m, root+"/deep", 2)
		expect.NoError(t, err)
		expect.NoError(t, s.Resize(expect.Patient(t), 3)) // it makes the directory
		_, err = s.AcquireN(expect.Patient(t), 3)
		expect.NoError(t, err)
		checkACLs(t, admin(t), root, 1)
	})
	t.Run("multi of a session", func(t *testing.T) {
		m := testserver.Connect(t, testserver.Server(t).ConnectString(), owner()...)
		s, root := testserver.Session(t, m), testserver.Path(t)
		_, err := s.Create(expect.Patient(t), root, nil, session.Container)
		expect.NoError(t, err)
		_, err = s.Multi(expect.Patient(t), &zk.CreateRequest{Path: root + "/a"})
		expect.NoError(t, err)
		checkACLs(t, admin(t), root, 0)
	})
	t.Run("chroot", func(t *testing.T) {
		root := testserver.Path(t)
		m := testserver.Connect(t, testserver.Server(t).ConnectString()+root+"/app", owner()...)
		mx, err := zklock.New(m, "/locks/a")
		expect.NoError(t, err)
		expect.NoError(t, mx.Lock(expect.Patient(t)))
		checkACLs(t, admin(t), root, 1)
	})
}

// A stranger can neither take a lock, nor see its holder, nor break it. Its calls fail at once
// and leave nothing, and the holder does not notice.
func TestStranger(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { testStranger(t, k.open) })
	}
}

func testStranger(t *testing.T, open func(*session.Manager, string) (locker, error)) {
	ctx := expect.Patient(t)
	dir := path.Join(testserver.Path(t), "lock")
	ours, err := open(testserver.Connect(t, testserver.Server(t).ConnectString(), owner()...), dir)
	expect.NoError(t, err)
	lease, err := ours.Acquire(ctx)
	expect.NoError(t, err)
	before := tree(t, admin(t), path.Dir(dir))

	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithAuth("digest", []byte("stranger:pass")))
	theirs, err := open(m, dir)
	expect.NoError(t, err)
	s := testserver.Session(t, m)
	// All twice: the first try must leave nothing that is in the way of the second.
	for range 2 {
		for what, f := range map[string]func() error{
			"Lock":       func() error { return theirs.Lock(ctx) },
			"TryLock":    func() error { _, err := theirs.TryLock(ctx); return err },
			"Do":         func() error { return theirs.Do(ctx, func(context.Context) error { panic("let in") }) },
			"Acquire":    func() error { _, err := theirs.Acquire(ctx); return err },
			"TryAcquire": func() error { _, err := theirs.TryAcquire(ctx); return err },
			"Contenders": func() error { _, err := theirs.Contenders(ctx); return err },
			"Revoke":     func() error { return zklock.Revoke(ctx, m, lease.Path()) },
			"Resize": func() error {
				if sem, ok := theirs.(*semaphore.Semaphore); ok && !strings.Contains(lease.Path(), "/leases/") {
					return sem.Resize(ctx, 5)
				}
				return zk.ErrNoAuth
			},
			"Multi": func() error {
				multi, err := zklock.Multi(theirs.(zklock.ContextLocker))
				expect.NoError(t, err)
				return multi.Lock(ctx)
			},
			"delete":       func() error { return s.Delete(ctx, lease.Path(), -1) },
			"remove":       func() error { r := s.Remove(ctx, lease.Path()); <-r.Done(); return r.Err() },
			"read":         func() error { _, _, err := s.Get(ctx, lease.Path()); return err },
			"write":        func() error { _, err := s.Set(ctx, dir, nil, -1); return err },
			"make another": func() error { _, err := s.Create(ctx, dir+"/x", nil, session.Persistent); return err },
			"guard":        func() error { _, err := s.Multi(ctx, lease.Guard()); return err },
		} {
			proxy.ResetRequests()
			err := f()
			expect.Match(t, what, err, zk.ErrNoAuth)
			if n := proxy.Count(func(r zktest.Request) bool { return strings.HasPrefix(r.Path, dir) }); n > 8 {
				t.Errorf("%s: %d requests: it is tried again", what, n)
			}
		}
	}
	expect.NoError(t, m.Close())
	expect.NoError(t, lease.Err())
	if diff := cmp.Diff(before, tree(t, admin(t), path.Dir(dir))); diff != "" {
		t.Errorf("the tree has changed (-before +after):\n%s", diff)
	}
	expect.NoError(t, lease.Release(ctx))
	expect.NoError(t, ours.Lock(ctx))
	expect.NoError(t, ours.Unlock())
}

// Whether a stranger learns that a node exists depends on the server's version: from 3.8.4 and 3.9.2 on it does not
// (ZOOKEEPER-2590).
func TestStrangerAsksWhetherANodeExists(t *testing.T) {
	mx, err := zklock.New(testserver.Connect(t, testserver.Server(t).ConnectString(), owner()...), testserver.Path(t))
	expect.NoError(t, err)
	expect.NoError(t, mx.Lock(expect.Patient(t)))
	s := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()))
	stat, err := s.Exists(expect.Patient(t), mx.Path())
	if told := err == nil && stat != nil && stat.NumChildren == 1; !told && !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("%+v, %v, want one child", stat, err)
	}
}

// The ACL of the parent decides about a delete. A directory that was there before, open to all, stays
// open, and any client can delete the nodes in it. The holder notices.
func TestDirectoryThatWasOpen(t *testing.T) {
	dir := testserver.Path(t)
	_, err := testserver.Admin(t).Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
	expect.NoError(t, err)
	mx, err := zklock.New(testserver.Connect(t, testserver.Server(t).ConnectString(), owner()...), dir)
	expect.NoError(t, err)
	lease, err := mx.Acquire(expect.Patient(t))
	expect.NoError(t, err)
	s := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()))
	_, _, err = s.Get(expect.Patient(t), lease.Path())
	expect.Match(t, "a stranger's read", err, zk.ErrNoAuth)
	expect.NoError(t, s.Delete(expect.Patient(t), lease.Path(), -1))
	select {
	case <-lease.Done():
		expect.Match(t, "the lease", lease.Err(), session.ErrLost)
	case <-time.After(testserver.Patience):
		t.Error("the holder has not noticed")
	}
}
