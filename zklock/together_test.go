package zklock_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// stage is a MultiLock of several mutexes on one manager, behind a proxy.
type stage struct {
	paths []string
	proxy *zktest.Proxy
	m     *session.Manager
	all   *zklock.MultiLock
	waits chan string // the directory of each wait
}

func newStage(t *testing.T, n int, opts ...session.Option) *stage {
	t.Helper()
	s := &stage{paths: dirs(t, n), proxy: testserver.Proxy(t), waits: make(chan string, 100)}
	opts = append(opts, session.WithTrace(session.Trace{
		Watch: func(ctx context.Context, w session.WatchInfo) (context.Context, func(error)) {
			s.waits <- path.Dir(w.Path)
			return ctx, nil
		},
	}))
	s.m = testserver.Connect(t, s.proxy.Addr(), opts...)
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

func (s *stage) count(op zktest.Op) int { return s.proxy.Count(zktest.Any(op)) }

// wantRequests checks how many transactions, creates and deletes there were.
func (s *stage) wantRequests(t *testing.T, multis, creates, deletes int) {
	t.Helper()
	if m, c, d := s.count(zktest.OpMulti), s.count(zktest.OpCreate), s.count(zktest.OpDelete); m != multis || c != creates || d != deletes {
		t.Errorf("%d transactions, %d creates and %d deletes, want %d, %d and %d", m, c, d, multis, creates, deletes)
	}
}

// creating and deleting match the transactions by their first path.
func creating(r zktest.Request) bool { return r.Op == zktest.OpMulti && !isNode(r) }
func deleting(r zktest.Request) bool { return r.Op == zktest.OpMulti && isNode(r) }

// isNode reports whether the path is that of a node with its number.
func isNode(r zktest.Request) bool {
	_, ok := queue.ParseNode(path.Base(r.Path))
	return ok
}

// If all locks are free, one transaction takes them, and another gives them back. All tokens are the same.
func TestTogether(t *testing.T) {
	ctx := patient(t)
	s := newStage(t, 3)
	l, err := s.all.Acquire(ctx)
	must(t, err)
	s.wantNodes(t, 1, 1, 1)
	s.wantRequests(t, 1, 0, 0)
	if n := s.count(zktest.OpGetChildren2); n != 3 {
		t.Errorf("%d listings, want 3", n)
	}
	var tokens []int64
	for i, one := range l.Leases() {
		must(t, one.Err())
		if path.Dir(one.Path()) != s.paths[i] {
			t.Errorf("lease %d is of %s", i, one.Path())
		}
		token, err := one.Token(ctx)
		must(t, err)
		tokens = append(tokens, token)
	}
	if tokens[0] == 0 || tokens[0] != tokens[1] || tokens[0] != tokens[2] {
		t.Errorf("tokens %v of one transaction", tokens)
	}
	must(t, l.Release(ctx))
	s.wantNodes(t, 0, 0, 0)
	s.wantRequests(t, 2, 0, 0)
}

// If one of the locks is busy, the locks before it are kept and so is the place in its queue. Those behind
// are given up before the wait begins, and taken in order afterwards.
func TestTogetherBusy(t *testing.T) {
	for busy := range 3 {
		t.Run(fmt.Sprint(busy), func(t *testing.T) {
			ctx := patient(t)
			s := newStage(t, 3)
			holder := newMutex(t, connect(t), s.paths[busy])
			must(t, holder.Lock(ctx))
			locked := background(func() error { return s.all.Lock(ctx) })
			if dir := receive(t, "the wait", s.waits); dir != s.paths[busy] {
				t.Errorf("waits in %s", dir)
			}
			want := []int{0, 0, 0}
			for i := range busy {
				want[i] = 1
			}
			want[busy] = 2
			s.wantNodes(t, want...)
			third := newMutex(t, connect(t), s.paths[busy])
			last := background(func() error { return third.Lock(ctx) })
			testserver.WaitChildren(t, s.paths[busy], 3)
			pending(t, "Lock", locked)
			must(t, holder.Unlock())
			must(t, receive(t, "Lock", locked)) // before the third: the place was kept
			pending(t, "the third", last)
			if n := s.count(zktest.OpMulti) - s.proxy.Count(deleting); n != 1 {
				t.Errorf("%d transactions that make nodes, want 1", n)
			}
			if n := s.count(zktest.OpCreate); n != 2-busy {
				t.Errorf("%d creates, want %d", n, 2-busy)
			}
			must(t, s.all.Unlock())
			must(t, receive(t, "the third", last))
			must(t, third.Unlock())
			s.wantNodes(t, 0, 0, 0)
		})
	}
}

// TryLock beside a holder leaves nothing behind when it returns.
func TestTogetherTryLock(t *testing.T) {
	ctx := patient(t)
	for busy := range 3 {
		s := newStage(t, 3)
		holder := newMutex(t, connect(t), s.paths[busy])
		must(t, holder.Lock(ctx))
		got, err := s.all.TryLock(ctx)
		must(t, err)
		want := []int{0, 0, 0}
		want[busy] = 1
		s.wantNodes(t, want...)
		must(t, holder.Unlock())
		if got || s.all.Held() {
			t.Error("TryLock beside a holder succeeded")
		}
		got, err = s.all.TryLock(ctx)
		must(t, err)
		if !got {
			t.Error("TryLock of free locks failed")
		}
		s.wantNodes(t, 1, 1, 1)
		must(t, s.all.Unlock())
		s.wantNodes(t, 0, 0, 0)
	}
}

// Directories that are missing are made at once, and only those.
func TestTogetherMissingParents(t *testing.T) {
	ctx := patient(t)
	s := newStage(t, 4)
	for _, dir := range s.paths[1:3] {
		must(t, testserver.Admin(t).Delete(dir, -1))
	}
	must(t, s.all.Lock(ctx))
	s.wantNodes(t, 1, 1, 1, 1)
	if testserver.HasContainers(t) { // without them, a manager asks for one, and then makes persistent nodes
		s.wantRequests(t, 2, 0, 0)
		if n := s.count(zktest.OpCreateContainer); n != 2 {
			t.Errorf("%d directories made, want 2", n)
		}
	}
	must(t, s.all.Unlock())
}

// WithMaxNodes has room for all nodes, or none is asked for.
func TestTogetherMaxNodes(t *testing.T) {
	ctx := patient(t)
	s := newStage(t, 3, session.WithMaxNodes(3))
	other := newMutex(t, s.m, testserver.Path(t))
	must(t, other.Lock(ctx))
	wantErr(t, "Lock", s.all.Lock(ctx), session.ErrTooManyNodes)
	s.wantNodes(t, 0, 0, 0)
	s.wantRequests(t, 0, s.count(zktest.OpCreate), 0)
	must(t, other.Unlock())
	for range 3 { // nothing stays counted
		must(t, s.all.Lock(ctx))
		must(t, s.all.Unlock())
	}
}

// An error of one lock ends the acquisition, if the locks before it are free. If one of these is busy, it
// is waited for first, as in order.
func TestTogetherConflict(t *testing.T) {
	ctx := patient(t)
	s := newStage(t, 3)
	alien := s.paths[1] + "/" + "lease-0000000000"
	_, err := testserver.Admin(t).Create(alien, nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	wantErr(t, "Lock", s.all.Lock(ctx), queue.ErrConflict)
	s.wantNodes(t, 0, 1, 0)
	_, err = s.all.TryAcquire(ctx)
	wantErr(t, "TryAcquire", err, queue.ErrConflict)
	s.wantNodes(t, 0, 1, 0)

	holder := newMutex(t, connect(t), s.paths[0])
	must(t, holder.Lock(ctx))
	locked := background(func() error { return s.all.Lock(ctx) })
	receive(t, "the wait", s.waits)
	s.wantNodes(t, 2, 1, 0)
	testserver.Delete(t, alien)
	must(t, holder.Unlock())
	must(t, receive(t, "Lock", locked))
	must(t, s.all.Unlock())
}

// What a server refuses for one lock is told as if the locks were taken in order, and leaves nothing.
func TestTogetherNoAuth(t *testing.T) {
	ctx := patient(t)
	s := newStage(t, 3)
	_, err := testserver.Admin(t).SetACL(s.paths[1], zk.WorldACL(zk.PermAll&^zk.PermCreate), -1)
	must(t, err)
	wantErr(t, "Lock", s.all.Lock(ctx), zk.ErrNoAuth)
	s.wantNodes(t, 0, 0, 0)
}

// If a server refuses to remove what has to be given up, Lock and TryLock return its error.
func TestTogetherRollbackRefused(t *testing.T) {
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
}

// Mutexes, local ones, readers, writers and semaphores are taken together. A semaphore in
// Curator's layout and a lock of another type are taken by themselves, at their place in the order.
func TestTogetherMembers(t *testing.T) {
	ctx := patient(t)
	base := testserver.Path(t)
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr())
	rw := func(name string) *rwlock.RWMutex {
		l, err := rwlock.New(m, base+name)
		must(t, err)
		return l
	}
	sem := func(name string, opts ...semaphore.Option) *semaphore.Semaphore {
		l, err := semaphore.New(m, base+name, 2, opts...)
		must(t, err)
		return l
	}
	for _, c := range []struct {
		what   string
		locks  []zklock.ContextLocker
		multis int
	}{
		{"all kinds", []zklock.ContextLocker{
			newMutex(t, m, base+"/a"), newMutex(t, m, base+"/b", zklock.WithLocalHandover(3)),
			rw("/c").Reader(), rw("/d"), sem("/e"),
		}, 1},
		{"one by itself", []zklock.ContextLocker{
			newMutex(t, m, base+"/a"), newMutex(t, m, base+"/b"), sem("/u", semaphore.WithCuratorLayout()),
			newMutex(t, m, base+"/v"), newMutex(t, m, base+"/w"),
		}, 2},
	} {
		all := newMulti(t, c.locks...)
		must(t, all.Lock(ctx)) // makes the directories
		transactions := -1
		for range 5 { // servers delete directories that are empty once a minute, and then there is another transaction
			proxy.ResetRequests()
			must(t, all.Unlock())
			must(t, all.Lock(ctx))
			if transactions = proxy.Count(creating); transactions == c.multis {
				break
			}
		}
		if transactions != c.multis {
			t.Errorf("%s: %d transactions that make nodes, want %d", c.what, transactions, c.multis)
		}
		must(t, all.Unlock())
	}
}

// A reader is let in beside readers, a writer waits, and a semaphore lets in as many as it has leases.
func TestTogetherPolicies(t *testing.T) {
	ctx := patient(t)
	base := testserver.Path(t)
	type process struct {
		rw  *rwlock.RWMutex
		sem *semaphore.Semaphore
	}
	var p [3]process
	for i := range p {
		m := connect(t)
		var err error
		p[i].rw, err = rwlock.New(m, base+"/rw")
		must(t, err)
		p[i].sem, err = semaphore.New(m, base+"/sem", 2)
		must(t, err)
	}
	read, write := newMulti(t, p[0].rw.Reader(), p[0].sem), newMulti(t, p[1].rw, p[1].sem)
	must(t, p[2].rw.RLock(ctx))
	must(t, p[2].sem.Lock(ctx))
	must(t, read.Lock(ctx))
	for name, m := range map[string]*zklock.MultiLock{"a writer": write, "a third lease": newMulti(t, p[1].rw.Reader(), p[1].sem)} {
		got, err := m.TryLock(ctx)
		must(t, err)
		if got {
			t.Errorf("%s is let in", name)
		}
	}
	must(t, p[2].rw.RUnlock())
	must(t, p[2].sem.Unlock())
	must(t, read.Unlock())
	got, err := write.TryLock(ctx)
	must(t, err)
	if !got {
		t.Error("a writer is not let in although the locks are free")
	}
	must(t, write.Unlock())
}

// A lock with local hand-over that is in use in this process has a queue of its own. The MultiLock joins that
// in order, with the locks before it taken and no node behind it.
func TestTogetherLocalInUse(t *testing.T) {
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

// If the holder of a lock with local hand-over is another process, its waiters in this process share the
// place that the transaction has got. The MultiLock came first.
func TestTogetherLocalKeepsPlace(t *testing.T) {
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
	must(t, all.Lock(ctx)) // the Local is idle
	must(t, all.Unlock())
}

// Each lock has one Acquire call, in which its listing is asked for. All of them are told of the hold.
func TestTogetherTraces(t *testing.T) {
	type key struct{}
	var begun, ended, held []string
	listed := make(chan string, 100)
	m := connect(t, session.WithTrace(session.Trace{
		Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			begun = append(begun, a.Path)
			return context.WithValue(ctx, key{}, a.Path), func(r session.AcquireResult) {
				if r.Err != nil || r.Busy || r.Attempts != 1 || r.Position != 0 {
					t.Errorf("%s: %+v", a.Path, r)
				}
				ended = append(ended, a.Path)
			}
		},
		Hold: func(_ context.Context, h session.HoldInfo) func(error) {
			held = append(held, h.Path)
			return nil
		},
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if of, _ := ctx.Value(key{}).(string); r.Op == "getChildren" && of != r.Path {
				t.Errorf("%s is listed for %q", r.Path, of)
			}
			listed <- r.Op
			return ctx, nil
		},
	}))
	paths := dirs(t, 3)
	all := newMulti(t, newMutex(t, m, paths[0]), newMutex(t, m, paths[1]), newMutex(t, m, paths[2]))
	must(t, all.Lock(patient(t)))
	for what, got := range map[string][]string{"begun": begun, "ended": ended, "held": held} {
		if !slices.Equal(got, paths) {
			t.Errorf("%s: %v", what, got)
		}
	}
	if op := receive(t, "a request", listed); op != "multi" {
		t.Errorf("the first request is %s", op)
	}
	must(t, all.Unlock())
}

// If the counter of one directory is used up, the acquisition fails with ErrSequence and leaves nothing.
func TestTogetherSequenceUsedUp(t *testing.T) {
	ctx := patient(t)
	server := zktest.Start(t)
	m := testserver.Connect(t, server.Addr())
	holders := []*zklock.Mutex{newMutex(t, m, "/a"), newMutex(t, m, "/b")} // so that the directories stay
	for _, h := range holders {
		must(t, h.Lock(ctx))
	}
	must(t, server.SetSequence("/b", 1<<31-1))
	must(t, holders[0].Unlock())
	all := newMulti(t, newMutex(t, m, "/a"), newMutex(t, m, "/b"), newMutex(t, m, "/c"))
	wantErr(t, "Lock", all.Lock(ctx), queue.ErrSequence)
	must(t, holders[1].Unlock())
	s, err := m.Session(ctx)
	must(t, err)
	for _, dir := range []string{"/a", "/c"} {
		names, _, err := s.Children(ctx, dir)
		must(t, err)
		if len(names) > 0 {
			t.Errorf("%s has %v", dir, names)
		}
	}
}
