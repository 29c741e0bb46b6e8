package lockz_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// scene is a step of a test: what happens, and what the page of the second process shows then.
type scene struct {
	name string
	play func(t *testing.T, other, us *session.Manager)
	want []string
}

func labelled(ctx context.Context, text string) context.Context { return queue.WithLabel(ctx, text) }

func mutex(t *testing.T, m *session.Manager, path string, opts ...zklock.Option) *zklock.Mutex {
	t.Helper()
	mx, err := zklock.New(m, path, opts...)
	must(t, err)
	return mx
}

// acquirer is a lock, or a contender of another process.
type acquirer interface {
	Acquire(ctx context.Context) (*queue.Lease, error)
}

// contender is one whose node has data of its own.
type contender struct {
	q *queue.Queue
	r queue.Request
}

func newContender(t *testing.T, m *session.Manager, path string, kind *queue.Kind, data []byte) contender {
	t.Helper()
	q, err := queue.New(m, path)
	must(t, err)
	return contender{q, queue.Request{Kind: kind, Data: data}}
}

func (c contender) Acquire(ctx context.Context) (*queue.Lease, error) { return c.q.Acquire(ctx, c.r) }

func lock(t *testing.T, mx acquirer, label string) {
	t.Helper()
	lease, err := mx.Acquire(labelled(t.Context(), label))
	must(t, err)
	t.Cleanup(func() { _ = lease.Release(context.Background()) })
}

// wait begins an acquisition that does not end before the test.
func wait(t *testing.T, mx acquirer, label string) {
	t.Helper()
	begin(t, func(ctx context.Context) error {
		lease, err := mx.Acquire(labelled(ctx, label))
		if err == nil {
			_ = lease.Release(context.Background())
		}
		return err
	})
	synctest.Wait() // it has its place
}

// theirs is the data of a node of another process.
var theirs = []byte(`{"id":"web-3/4711","label":"theirs","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`)

var scenes = []scene{
	{"nothing", func(*testing.T, *session.Manager, *session.Manager) {}, nil},
	{"a mutex, held and waited for", func(t *testing.T, other, us *session.Manager) {
		lock(t, newContender(t, other, "/a", queue.Mutex(), theirs), "")
		lock(t, mutex(t, us, "/b"), "ours")
		wait(t, mutex(t, us, "/a"), "first")
		wait(t, mutex(t, us, "/a"), "second")
	}, []string{
		"holds mutex /b ours",
		`waits mutex /a first, 1 ahead, behind "theirs" here=false`,
		`waits mutex /a second, 2 ahead, behind "theirs" here=false`,
	}},
	{"a read-write lock", func(t *testing.T, other, us *session.Manager) {
		ours := newRW(t, us, "/a")
		lock(t, newContender(t, other, "/a", queue.Reader(), theirs), "")
		lock(t, ours.Reader(), "first")
		lock(t, ours.Reader(), "second")
		wait(t, ours, "third")
		wait(t, ours.Reader(), "fourth")
	}, []string{
		"holds read /a first",
		"holds read /a second",
		`waits write /a third, 3 ahead, behind "second" here=true`,
		`waits read /a fourth, 1 ahead, behind "third" here=true`,
	}},
	{"a writer that goes on as a reader", func(t *testing.T, other, us *session.Manager) {
		rw, ctx := newRW(t, us, "/a"), labelled(queue.WithOwner(t.Context()), "ours")
		must(t, rw.Lock(ctx))
		must(t, rw.RLock(ctx))
		wait(t, newRW(t, other, "/a").Reader(), "")
		must(t, rw.Unlock())
	}, []string{"holds read /a ours"}},
	{"leases of a semaphore", func(t *testing.T, other, us *session.Manager) {
		sem := newSem(t, us, "/a", 5)
		lock(t, newSem(t, other, "/a", 5), "theirs")
		lease, err := sem.AcquireN(labelled(t.Context(), "ours"), 3)
		must(t, err)
		t.Cleanup(func() { _ = lease.Release(context.Background()) })
		begin(t, func(ctx context.Context) error {
			_, err := sem.AcquireN(labelled(ctx, "two"), 2)
			return err
		})
	}, []string{
		"holds semaphore /a x3 ours",
		`waits semaphore /a x2 two, 2 ahead, behind "theirs" here=false`,
	}},
	{"a semaphore in Curator's layout", func(t *testing.T, other, us *session.Manager) {
		lease, err := newSem(t, other, "/a", 1, semaphore.WithCuratorLayout()).Acquire(t.Context())
		must(t, err)
		t.Cleanup(func() { _ = lease.Release(context.Background()) })
		s, err := other.Session(t.Context())
		must(t, err)
		_, err = s.Set(t.Context(), lease.Path(), theirs, -1)
		must(t, err)
		wait(t, newSem(t, us, "/a", 1, semaphore.WithCuratorLayout()), "first")
		wait(t, newSem(t, us, "/a", 1, semaphore.WithCuratorLayout()), "second")
	}, []string{
		"holds gate /a/locks first",
		`waits semaphore /a/leases first, 1 ahead, behind "theirs" here=false`,
		`waits gate /a/locks second, 1 ahead, behind "first" here=true`,
	}},
	{"goroutines that hand a lock on", func(t *testing.T, other, us *session.Manager) {
		mx := mutex(t, us, "/a", zklock.WithLocalHandover(10))
		lock(t, mx, "ours")
		wait(t, mx, "first")
		wait(t, mx, "second")
	}, []string{
		"holds mutex /a ours",
		"waits mutex /a first, 1 in this process",
		"waits mutex /a second, 2 in this process",
	}},
	{"goroutines that share a place in the queue", func(t *testing.T, other, us *session.Manager) {
		lock(t, newContender(t, other, "/a", queue.Mutex(), theirs), "")
		mx := mutex(t, us, "/a", zklock.WithLocalHandover(10))
		wait(t, mx, "first")
		wait(t, mx, "second")
	}, []string{
		`waits mutex /a first, 1 ahead, behind "theirs" here=false`,
		`waits mutex /a second, 1 ahead, behind "theirs" here=false, 1 in this process`,
	}},
	{"goroutines that share a place, without the first", func(t *testing.T, other, us *session.Manager) {
		lock(t, newContender(t, other, "/a", queue.Mutex(), theirs), "")
		mx := mutex(t, us, "/a", zklock.WithLocalHandover(10))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = mx.Acquire(labelled(ctx, "first")) }()
		synctest.Wait()
		wait(t, mx, "second")
		cancel()
	}, []string{
		`waits mutex /a second, 1 ahead, behind "theirs" here=false`,
	}},
	{"several locks, all or none", func(t *testing.T, other, us *session.Manager) {
		lock(t, newContender(t, other, "/b", queue.Mutex(), theirs), "")
		all, err := zklock.Multi(mutex(t, us, "/c"), mutex(t, us, "/b"), mutex(t, us, "/a"))
		must(t, err)
		begin(t, func(ctx context.Context) error {
			_, err := all.Acquire(labelled(ctx, "all"))
			return err
		})
	}, []string{
		"holds mutex /a all",
		`waits mutex /b all, 1 ahead, behind "theirs" here=false`,
		"waits mutex /c all",
	}},
	{"a candidate behind the leader", func(t *testing.T, other, us *session.Manager) {
		for _, m := range []*session.Manager{other, us} {
			e, err := election.New(m, "/a", election.WithID("10.0.0.7:8080"))
			must(t, err)
			begin(t, func(ctx context.Context) error {
				return e.Run(ctx, func(ctx context.Context) error {
					<-ctx.Done()
					return nil
				})
			})
			synctest.Wait()
		}
	}, []string{
		`waits election /a, 1 ahead, behind "10.0.0.7:8080" here=false`,
		"election /a, leader 10.0.0.7:8080",
	}},
	{"a leader", func(t *testing.T, other, us *session.Manager) {
		e, err := election.New(us, "/a")
		must(t, err)
		begin(t, func(ctx context.Context) error {
			return e.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
		})
	}, []string{"holds election /a", "election /a, leader this process"}},
	{"a candidate behind a leader without an id of its own", func(t *testing.T, other, us *session.Manager) {
		for _, m := range []*session.Manager{other, us} {
			e, err := election.New(m, "/a")
			must(t, err)
			begin(t, func(ctx context.Context) error {
				return e.Run(ctx, func(ctx context.Context) error {
					<-ctx.Done()
					return nil
				})
			})
			synctest.Wait()
		}
	}, []string{
		fmt.Sprintf(`waits election /a, 1 ahead, behind %q here=false`, queue.Identity()),
		"election /a, leader " + queue.Identity(),
	}},
	{"a hold inside a hold, and locks that are over", func(t *testing.T, other, us *session.Manager) {
		begin(t, func(ctx context.Context) error {
			return mutex(t, us, "/a").Do(labelled(ctx, "outer"), func(ctx context.Context) error {
				return mutex(t, us, "/b").Do(ctx, func(ctx context.Context) error {
					<-ctx.Done()
					return nil
				})
			})
		})
		synctest.Wait()
		must(t, mutex(t, us, "/c").Lock(t.Context()))
		ok, err := mutex(t, us, "/a").TryLock(t.Context())
		if ok || err != nil {
			t.Error(ok, err)
		}
		over, cancel := context.WithCancel(t.Context())
		go func() { _ = mutex(t, us, "/a").Lock(over) }()
		synctest.Wait()
		cancel()
	}, []string{"holds mutex /a outer", "holds mutex /b outer", "holds mutex /c"}},
}

func newRW(t *testing.T, m *session.Manager, path string, opts ...rwlock.Option) *rwlock.RWMutex {
	t.Helper()
	rw, err := rwlock.New(m, path, opts...)
	must(t, err)
	return rw
}

func newSem(t *testing.T, m *session.Manager, path string, limit int, opts ...semaphore.Option) *semaphore.Semaphore {
	t.Helper()
	s, err := semaphore.New(m, path, limit, opts...)
	must(t, err)
	return s
}

// The page shows each kind of lock as it is held and waited for, and in which order.
func TestKinds(t *testing.T) {
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				other, us := newOther(t, srv), newProcess(t, srv)
				s.play(t, other, us.Manager)
				synctest.Wait()
				time.Sleep(known)
				if diff := cmp.Diff(s.want, lines(us.shown(t))); diff != "" {
					t.Errorf("the page (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A manager that is closed has no session in this process, although it may be reachable. Servers of two
// ensembles can give two sessions the same id.
func TestClosedIsNotHere(t *testing.T) {
	var closed *process
	synctest.Test(t, func(t *testing.T) {
		closed = newProcess(t, zktest.Start(t))
	})
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		other, us := newOther(t, srv), newProcess(t, srv)
		lock(t, newContender(t, other, "/a", queue.Mutex(), theirs), "")
		wait(t, mutex(t, us.Manager, "/a"), "first")
		time.Sleep(known)
		want := []string{`waits mutex /a first, 1 ahead, behind "theirs" here=false`}
		if diff := cmp.Diff(want, lines(us.shown(t))); diff != "" {
			t.Errorf("the page (-want +got):\n%s", diff)
		}
	})
	runtime.KeepAlive(closed)
}
