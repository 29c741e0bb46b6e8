package zklock_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// New returns an error for bad input, before any I/O: the manager of this test cannot do any.
func TestNewInvalid(t *testing.T) {
	long := strings.Repeat("a", 200)
	for _, c := range []struct {
		path string
		opt  zklock.Option
		ok   bool
	}{
		{"/locks/./a", lazy, false},
		{"/locks/a\nb", lazy, false},
		{"/locks/\xff", lazy, false},
		{"/zookeeper", lazy, false},
		{"/zookeeper/quota/a", lazy, false},
		{"/locks/a/_c_4f1d-lock-0000000001", lazy, false},
		{"/locks/a/4f1d__lock__0000000001", lazy, false},
		{"/locks/lease-0000000001/a", lazy, false},
		{"/" + strings.Repeat("a", 1<<20), lazy, false},
		{"/nil", nil, false},
		{"/empty name", zklock.WithName(""), false},
		{"/no text", zklock.WithName("\xff"), false},
		{"/long name", zklock.WithName(long + "a"), false},
		{"/no hand-over", zklock.WithLocalHandover(0), false},
		{"/fewer", zklock.WithLocalHandover(-1), false},
		{"/no time", zklock.WithLazyRelease(0), false},
		{"/less", zklock.WithLazyRelease(-time.Second), false},
		{"/too long", zklock.WithLazyRelease(time.Minute + 1), false},

		{"/locks/zookeeper", lazy, true},
		{"/zookeepers", lazy, true},
		{"/locks/0000000001", lazy, true},
		{"/locks/..a/b..", lazy, true},
		{"/løcks/a b", lazy, true},
		{"/hand-over", zklock.WithLocalHandover(1), true},
		{"/name", zklock.WithName(long), true},
	} {
		mx, err := zklock.New(new(session.Manager), c.path, zklock.WithName("good"), c.opt)
		if c.ok {
			must(t, err)
			continue
		}
		wantErr(t, c.path, err, session.ErrInvalid)
		if mx != nil {
			t.Errorf("%s: a Mutex beside an error", c.path)
		}
	}
}

// ownType is a lock of a user's, which embeds one of this module.
type ownType struct{ *zklock.Mutex }

// foreign is a lock that has the methods of a ContextLocker and was not made by this module.
type foreign struct{ l *zklock.Mutex }

func (f foreign) Path() string                                         { return f.l.Path() }
func (f foreign) Acquire(ctx context.Context) (*queue.Lease, error)    { return f.l.Acquire(ctx) }
func (f foreign) TryAcquire(ctx context.Context) (*queue.Lease, error) { return f.l.TryAcquire(ctx) }

// Multi returns an error for bad arguments, before any I/O: the servers do not exist.
func TestMultiInvalid(t *testing.T) {
	open := func(servers string) *session.Manager {
		m, err := session.Open(servers)
		must(t, err)
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	const nobody = "192.0.2.1:2181"
	m := open(nobody)
	mutex := func(path string) *zklock.Mutex { return newMutex(t, m, path) }
	a, b, c := mutex("/a"), newRW(t, m, "/b"), newSem(t, m, "/c", 2)
	type locks = []zklock.ContextLocker
	for what, of := range map[string]locks{
		"none":                          nil,
		"nil":                           {a, nil},
		"a nil pointer":                 {a, (*zklock.Mutex)(nil)},
		"a zero value":                  {a, new(zklock.Mutex)},
		"a zero Reader":                 {a, rwlock.Reader{}},
		"a type that embeds a lock":     {a, ownType{mutex("/b")}},
		"a type of a user":              {a, foreign{mutex("/b")}},
		"twice":                         {a, mutex("/b"), mutex("/a")},
		"a writer and its reader":       {b, a, b.Reader()},
		"two kinds at one path":         {c, a, mutex("/c")},
		"another manager":               {a, newMutex(t, open(nobody), "/b")},
		"another manager with a chroot": {a, newMutex(t, open(nobody+"/app"), "/a")},
	} {
		l, err := zklock.Multi(of...)
		wantErr(t, what, err, session.ErrInvalid)
		if l != nil {
			t.Errorf("%s: a lock beside an error", what)
		}
	}
	for _, of := range []locks{{a}, {newSem(t, m, "/d", 2, semaphore.WithCuratorLayout()), c, b, a}, {b.Reader(), a}} {
		newMulti(t, of...)
	}
}

// Revoke returns an error for bad input, before any I/O: the manager here cannot do any.
func TestRevokeInvalid(t *testing.T) {
	for _, node := range []string{
		"", "/", "locks/a/lock-0000000000", "/locks/a", "/locks/a/", "/locks/a/readme",
		"/locks/a/lock-", "/locks/a/lock-1", "/locks/a/block-0000000000", "/lock-0000000000",
	} {
		wantErr(t, "Revoke of "+node, zklock.Revoke(t.Context(), new(session.Manager), node), session.ErrInvalid)
	}
}

// The Locker of each kind of lock tells a loss, once.
func TestLockersTellLoss(t *testing.T) {
	run(t, func(w *world) {
		m := w.Connect()
		rw := newRW(t, m, "/rw")
		for what, locker := range map[string]func(onLost func(error)) sync.Locker{
			"mutex": newMutex(t, m, "/a").Locker, "multi": newMulti(t, newMutex(t, m, "/b")).Locker,
			"writer": rw.Locker, "reader": rw.RLocker,
		} {
			losses := make(chan error, 10)
			l := locker(func(err error) { losses <- err })
			l.Lock()
			synctest.Wait()
			l.Unlock()
			l.Lock()
			w.Lose(m)
			if len(losses) != 1 {
				t.Fatalf("%s: told %d times of one loss", what, len(losses))
			}
			w.Want(what, <-losses, session.ErrLost)
			l.Unlock()
		}
	})
}
