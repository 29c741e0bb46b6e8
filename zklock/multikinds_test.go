package zklock_test

import (
	"context"
	"path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// stage is a MultiLock of several mutexes on one manager.
type stage struct {
	paths []string
	m     *session.Manager
	all   *zklock.MultiLock
	waits chan string // the directory of each wait
}

func newStage(t *testing.T, n int, opts ...session.Option) *stage {
	t.Helper()
	s := &stage{paths: dirs(t, n), waits: make(chan string, 100)}
	s.m = connect(t, append(opts, session.WithTrace(session.Trace{
		Watch: func(ctx context.Context, w session.WatchInfo) (context.Context, func(error)) {
			s.waits <- path.Dir(w.Path)
			return ctx, nil
		},
	}))...)
	var locks []zklock.ContextLocker
	for _, dir := range s.paths {
		locks = append(locks, newMutex(t, s.m, dir))
	}
	s.all = newMulti(t, locks...)
	return s
}

// wantNodes checks how many nodes the directories have, now.
func (s *stage) wantNodes(t *testing.T, counts ...int) {
	t.Helper()
	for i, dir := range s.paths {
		if names := testserver.Children(t, dir); len(names) != counts[i] {
			t.Errorf("%s has %d nodes, want %d: %v", dir, len(names), counts[i], names)
		}
	}
}

// An error of one lock ends the acquisition, also if another lock is busy. Nothing is left.
func TestMultiConflict(t *testing.T) {
	ctx := patient(t)
	s, admin := newStage(t, 3), testserver.Admin(t)
	_, err := admin.SetACL(s.paths[1], zk.WorldACL(zk.PermAll&^zk.PermCreate), -1)
	must(t, err)
	wantErr(t, "Lock", s.all.Lock(ctx), zk.ErrNoAuth)
	s.wantNodes(t, 0, 0, 0)
	_, err = admin.SetACL(s.paths[1], zk.WorldACL(zk.PermAll), -1)
	must(t, err)
	_, err = admin.Create(s.paths[1]+"/lease-0000000000", nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	wantErr(t, "Lock", s.all.Lock(ctx), queue.ErrConflict)
	s.wantNodes(t, 0, 1, 0)
	_, err = s.all.TryAcquire(ctx)
	wantErr(t, "TryAcquire", err, queue.ErrConflict)
	s.wantNodes(t, 0, 1, 0)

	must(t, newMutex(t, connect(t), s.paths[0]).Lock(ctx))
	wantErr(t, "Lock, with a busy lock", s.all.Lock(ctx), queue.ErrConflict)
	s.wantNodes(t, 1, 1, 0)
}

// If a server refuses to remove what has to be given up, Lock, TryLock and Unlock return its error.
func TestMultiRollbackRefused(t *testing.T) {
	t.Parallel()
	ctx := patient(t)
	for what, call := range map[string]func(*zklock.MultiLock) error{
		"Lock":    func(m *zklock.MultiLock) error { return m.Lock(ctx) },
		"TryLock": func(m *zklock.MultiLock) error { _, err := m.TryLock(ctx); return err },
	} {
		s := newStage(t, 3)
		holder := newMutex(t, connect(t), s.paths[1], lazy) // a try takes that for a place that may leave, and enters
		must(t, holder.Lock(ctx))
		_, err := testserver.Admin(t).SetACL(s.paths[2], zk.WorldACL(zk.PermAll&^zk.PermDelete), -1)
		must(t, err)
		wantErr(t, what, call(s.all), zk.ErrNoAuth)
		s.wantNodes(t, 0, 1, 1)
		_, err = testserver.Admin(t).SetACL(s.paths[2], zk.WorldACL(zk.PermAll), -1)
		must(t, err)
		testserver.WaitChildren(t, s.paths[2], 0)
		must(t, holder.Unlock())
	}
	s := newStage(t, 2)
	must(t, s.all.Lock(ctx))
	for _, perms := range []int32{zk.PermAll &^ zk.PermDelete, zk.PermAll} {
		if perms == zk.PermAll {
			wantErr(t, "Unlock", s.all.Unlock(), zk.ErrNoAuth)
		}
		_, err := testserver.Admin(t).SetACL(s.paths[0], zk.WorldACL(perms), -1)
		must(t, err)
	}
	testserver.WaitChildren(t, s.paths[0], 0)
}

// A MultiLease that was released hears no more of requests for a place that goroutines share, and which the next one has: it
// would stay in memory for as long as the place.
func TestMultiReleasedHearsNoMore(t *testing.T) {
	ctx := patient(t)
	m := connect(t)
	all := newMulti(t, newMutex(t, m, testserver.Path(t), zklock.WithLazyRelease(time.Minute)))
	first, err := all.Acquire(ctx)
	must(t, err)
	must(t, first.Release(ctx))
	second, err := all.Acquire(ctx)
	must(t, err)
	node := second.Leases()[0].Path()
	if node != first.Leases()[0].Path() {
		t.Fatal("the place was not kept, and nobody else wants the lock")
	}
	must(t, zklock.Revoke(ctx, connect(t), node))
	receive(t, "the request", second.Revoked())
	select {
	case <-first.Revoked():
		t.Error("told of a request for what was released")
	default:
	}
	must(t, second.Release(ctx))
}
