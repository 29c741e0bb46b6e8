package zklock_test

import (
	"context"
	"errors"
	"path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
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

// A session that has no room for all of the nodes is refused them, by Lock and by a try, and nothing is left. As soon as there is
// room they are taken.
func TestMultiBeyondRoom(t *testing.T) {
	ctx := patient(t)
	s := newStage(t, 3, session.WithNodeLimits(3, 1<<20))
	other := newMutex(t, s.m, testserver.Path(t))
	for range 3 { // nothing stays counted
		must(t, other.Lock(ctx))
		wantErr(t, "Lock", s.all.Lock(ctx), session.ErrTooManyNodes)
		s.wantNodes(t, 0, 0, 0)
		_, err := s.all.TryLock(ctx)
		wantErr(t, "TryLock", err, session.ErrTooManyNodes)
		s.wantNodes(t, 0, 0, 0)
		must(t, other.Unlock())
		must(t, s.all.Lock(ctx))
		must(t, s.all.Unlock())
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

// Locks of all kinds are taken together. Meanwhile another process gets none of them, and then all.
func TestMultiOfAllKinds(t *testing.T) {
	ctx := patient(t)
	base := testserver.Path(t)
	mutexes := func(m *session.Manager) []zklock.ContextLocker {
		sem, err := semaphore.New(m, base+"/s", 1)
		curator, curatorErr := semaphore.New(m, base+"/c", 1, semaphore.WithCuratorLayout())
		must(t, errors.Join(err, curatorErr))
		return []zklock.ContextLocker{
			newMutex(t, m, base+"/z"), newMutex(t, m, base+"/h", zklock.WithLocalHandover(3)), newMutex(t, m, base+"/k", lazy), sem, curator,
		}
	}
	sides := func(m *session.Manager, name string) (reader, writer zklock.ContextLocker) {
		rw, err := rwlock.New(m, base+name)
		must(t, err)
		return rw.Reader(), rw
	}
	m, theirs := connect(t), connect(t)
	reader, _ := sides(m, "/r")
	_, writer := sides(m, "/w")
	_, otherWriter := sides(theirs, "/r")
	otherReader, _ := sides(theirs, "/w")
	others := append(mutexes(theirs), otherWriter, otherReader)
	locks := append(mutexes(m), reader, writer)
	for what, all := range map[string]*zklock.MultiLock{
		"at once": newMulti(t, locks[0], locks[3], reader, writer), "in order": newMulti(t, locks...),
	} {
		l, err := all.Acquire(ctx)
		must(t, err)
		for i, one := range others {
			if what == "at once" && (i == 1 || i == 2 || i == 4) {
				continue
			}
			_, err := one.TryAcquire(ctx)
			wantErr(t, what+": TryAcquire of "+one.Path(), err, queue.ErrBusy)
		}
		must(t, l.Release(ctx))
		free, err := newMulti(t, others...).TryAcquire(ctx)
		must(t, err)
		must(t, free.Release(ctx))
	}
}

// A lock with local hand-over that is in use in this process has a queue of its own. The MultiLock joins that
// in order, with the locks before it taken and no node behind it.
func TestMultiLocalInUse(t *testing.T) {
	ctx := patient(t)
	s := newStage(t, 4)
	local := newMutex(t, s.m, s.paths[2], zklock.WithLocalHandover(10))
	all := newMulti(t, newMutex(t, s.m, s.paths[0]), newMutex(t, s.m, s.paths[1]), local, newMutex(t, s.m, s.paths[3]))
	must(t, local.Lock(ctx))
	got, err := all.TryLock(ctx)
	must(t, err)
	if got {
		t.Error("TryLock while the process holds one of the locks")
	}
	s.wantNodes(t, 0, 0, 1, 0)
	l, err := local.TryAcquire(ctx)
	wantErr(t, "TryAcquire", err, queue.ErrBusy)
	if l != nil {
		t.Error("a lease")
	}
	locked := background(func() error { return all.Lock(ctx) })
	testserver.WaitChildren(t, s.paths[1], 1)
	pending(t, "Lock", locked)
	s.wantNodes(t, 1, 1, 1, 0)
	must(t, local.Unlock())
	must(t, receive(t, "Lock", locked))
	s.wantNodes(t, 1, 1, 1, 1)
	must(t, all.Unlock())
	s.wantNodes(t, 0, 0, 0, 0)
}

// If the holder of a lock with local hand-over is another process, goroutines of this process share the place that the
// MultiLock has behind it, and get the lock after the MultiLock.
func TestMultiLocalKeepsPlace(t *testing.T) {
	ctx := patient(t)
	s := newStage(t, 3)
	local := newMutex(t, s.m, s.paths[1], zklock.WithLocalHandover(10))
	all := newMulti(t, newMutex(t, s.m, s.paths[0]), local, newMutex(t, s.m, s.paths[2]))
	holder := newMutex(t, connect(t), s.paths[1])
	must(t, holder.Lock(ctx))
	locked := background(func() error { return all.Lock(ctx) })
	receive(t, "the wait", s.waits)
	s.wantNodes(t, 1, 2, 0)
	behind := background(func() error { return local.Lock(ctx) })
	must(t, holder.Unlock())
	must(t, receive(t, "Lock", locked))
	pending(t, "the next of the process", behind)
	s.wantNodes(t, 1, 1, 1)
	must(t, all.Unlock())
	must(t, receive(t, "the next of the process", behind))
	must(t, local.Unlock())
	s.wantNodes(t, 0, 0, 0)
	must(t, all.Lock(ctx))
	must(t, all.Unlock())
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
