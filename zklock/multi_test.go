package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// joint is a MultiLock of the mutexes at /a, /b and /c, and another process with the same mutexes. Each message takes
// half of a round trip.
type joint struct {
	*world
	m      *session.Manager
	all    *zklock.MultiLock
	others []*zklock.Mutex
}

var jointPaths = []string{"/a", "/b", "/c"}

func takeJointly(t *testing.T, f func(j *joint), opts ...session.Option) {
	t.Helper()
	run(t, func(w *world) {
		m, other := w.Connect(opts...), w.Connect()
		j := &joint{w, m, mutexesOf(t, m), nil}
		for _, path := range jointPaths {
			j.others = append(j.others, newMutex(t, other, path))
		}
		w.Must(j.all.Lock(w.Context())) // makes the directories
		w.Must(j.all.Unlock())
		w.Pass(time.Second)
		w.Delay(roundTrip / 2)
		w.ResetRequests()
		f(j)
		w.Delay(0)
	})
}

func mutexesOf(t *testing.T, m *session.Manager) *zklock.MultiLock {
	var locks []zklock.ContextLocker
	for _, path := range slices.Backward(jointPaths) {
		locks = append(locks, newMutex(t, m, path))
	}
	return newMulti(t, locks...)
}

// lock begins to take all locks.
func (j *joint) lock() (locked interface{ Err() error }) {
	c := j.Go(func() error { return j.all.Lock(j.Context()) })
	j.Pass(time.Second)
	return c
}

// want wants so many nodes in the directories.
func (j *joint) want(when string, counts ...int) {
	j.T.Helper()
	j.Pass(5 * roundTrip)
	for i, dir := range jointPaths {
		j.WantNodes(when, dir, counts[i])
	}
}

// made returns the directories of the creates of one session, in their order.
func (j *joint) made(by *session.Manager) (dirs []string) {
	for _, r := range j.Requests() {
		if r.Op == zktest.OpCreate && r.Session == j.Session(by).ID() {
			dirs = append(dirs, path.Dir(r.Path))
		}
	}
	return dirs
}

// If one of the locks is held, the MultiLock keeps no node in its way or behind it: it waits in order.
func TestMultiWaitsInOrder(t *testing.T) {
	for busy := range jointPaths {
		takeJointly(t, func(j *joint) {
			j.Must(j.others[busy].Lock(j.Context()))
			locked := j.lock()
			counts := []int{0, 0, 0}
			for i := range busy {
				counts[i] = 1
			}
			counts[busy] = 2
			j.want("while it waits", counts...)
			j.Must(j.others[busy].Unlock())
			j.Must(locked.Err())
			j.want("while it holds", 1, 1, 1)
			j.Must(j.all.Unlock())
			j.want("in the end", 0, 0, 0)
		})
	}
}

// Before a MultiLock enters the queues in order, the servers have confirmed that its first nodes are gone.
func TestMultiWaitsForItsRemovals(t *testing.T) {
	takeJointly(t, func(j *joint) {
		j.Must(j.others[1].Lock(j.Context()))
		j.Pass(time.Second)
		held := j.HoldRequest(zktest.On(zktest.OpDelete, "/c/"))
		locked := j.lock()
		if made := j.made(j.m); len(made) != 3 {
			j.Errorf("it has made nodes in %v before its first ones were gone", made)
		}
		held.Release()
		j.Pass(time.Second)
		if made := j.made(j.m); !slices.Equal(made[3:], []string{"/a", "/b"}) {
			j.Errorf("it has made nodes in %v", made)
		}
		j.Must(j.others[1].Unlock())
		j.Must(locked.Err())
	})
}

// Two MultiLocks enter at the same time, and each meets a node of the other. Both then take the locks in order, and neither
// waits for the other in a circle.
func TestMultiOverlap(t *testing.T) {
	takeJointly(t, func(j *joint) {
		second := j.Connect()
		rival := mutexesOf(t, second)
		ours, theirs := j.Session(j.m).ID(), j.Session(second).ID()
		// The last create of the first one is held back until the second one has a node there. The second one's node stays until
		// the first one has met it.
		var mu sync.Mutex // the connections of both are looked at
		creates := make(map[string]bool)
		where := ""
		lastCreate := j.HoldRequest(func(r zktest.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			if r.Op == zktest.OpCreate && r.Session == ours {
				where = path.Dir(r.Path)
				creates[where] = true
			}
			return len(creates) == len(jointPaths)
		})
		var holders atomic.Int32
		do := func(all *zklock.MultiLock) func() error {
			return func() error {
				return all.Do(j.Context(), func(context.Context) error {
					if holders.Add(1) != 1 {
						j.Error("two hold")
					}
					time.Sleep(time.Second)
					holders.Add(-1)
					return nil
				})
			}
		}
		first := j.Go(do(j.all))
		j.Await(lastCreate.Hit())
		dir := where
		itsDelete := j.HoldRequest(func(r zktest.Request) bool {
			return r.Op == zktest.OpDelete && r.Session == theirs && path.Dir(r.Path) == dir
		})
		other := j.Go(do(rival))
		j.Await(itsDelete.Hit())
		lastCreate.Release()
		j.Pass(time.Second)
		itsDelete.Release()
		j.Must(errors.Join(first.Err(), other.Err()))
		for _, m := range []*session.Manager{j.m, second} {
			if made := j.made(m); len(made) != 6 || !slices.Equal(made[3:], jointPaths) {
				j.Errorf("one has made nodes in %v: want all at once, and then in order", made)
			}
		}
		j.want("in the end", 0, 0, 0)
	})
}

// Each lock has one Acquire call, also if it is entered twice, one Traceparent call and one Hold call. The listings of a lock
// belong to its Acquire call. Any goroutine can look at the context with which the locks are taken. It ends when all locks
// are taken. The race detector decides about that.
func TestMultiTellsEachLockOnce(t *testing.T) {
	type key struct{}
	var mu sync.Mutex
	var told []string
	var lookers sync.WaitGroup
	tell := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprintf(format, args...))
	}
	took := func() string {
		all := strings.Join(told, ", ")
		told = nil
		return all
	}
	takeJointly(t, func(j *joint) {
		took()
		j.Must(j.others[1].Lock(j.Context()))
		locked := j.lock()
		j.Must(j.others[1].Unlock())
		j.Must(locked.Err())
		j.Must(j.all.Unlock())
		if got, want := took(), "begin /a, begin /b, begin /c, parent, parent, parent, hold /a, end /a 2 false, hold /b, "+
			"end /b 2 false, hold /c, end /c 2 false, release /c, release /b, release /a"; got != want {
			j.Errorf("told %s,\nwant %s", got, want)
		}
		j.Must(j.others[2].Lock(j.Context()))
		if ok, err := j.all.TryLock(j.Context()); ok || err != nil {
			j.Errorf("TryLock: %v, %v", ok, err)
		}
		if got, want := took(), "begin /a, begin /b, begin /c, end /c 0 true, end /a 0 true, end /b 0 true"; got != want {
			j.Errorf("a busy try: told %s,\nwant %s", got, want)
		}
		lookers.Wait()
	}, session.WithTrace(session.Trace{
		Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			tell("begin %s", a.Path)
			lookers.Go(func() {
				for ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
			})
			return context.WithValue(ctx, key{}, a.Path), func(r session.AcquireResult) {
				tell("end %s %d %v", a.Path, r.Attempts, r.Busy)
				if r.Err != nil {
					t.Errorf("%s: %v", a.Path, r.Err)
				}
			}
		},
		Traceparent: func(context.Context) string { tell("parent"); return "" },
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if of, _ := ctx.Value(key{}).(string); r.Op == "getChildren" && of != r.Path {
				t.Errorf("%s is listed for %q", r.Path, of)
			}
			return ctx, nil
		},
		Hold: func(_ context.Context, h session.HoldInfo) func(error) { tell("hold %s", h.Path); return nil },
		Release: func(ctx, _ context.Context, h session.HoldInfo) (context.Context, func(error)) {
			tell("release %s", h.Path)
			return ctx, nil
		},
	}))
}

// If one of the locks is lost while the MultiLock waits for another, it gives up all and begins again.
func TestMultiLosesOneWhileItWaits(t *testing.T) {
	takeJointly(t, func(j *joint) {
		j.Must(j.others[1].Lock(j.Context()))
		locked := j.lock()
		j.want("while it waits", 1, 2, 0)
		before := j.Nodes("/a")
		j.Remove(before[0])
		j.want("while it waits again", 1, 2, 0)
		if again := j.Nodes("/a"); slices.Equal(again, before) {
			j.Errorf("%q in the first again", again)
		}
		j.Must(j.others[1].Unlock())
		j.Must(locked.Err())
		j.Must(j.all.Unlock())
		j.want("in the end", 0, 0, 0)
	})
}

// If the session is lost while one of the locks is entered in the same flight, no hook is told that the others are held: their
// nodes are gone.
func TestMultiLosesSomeInItsFlight(t *testing.T) {
	var held []string
	takeJointly(t, func(j *joint) {
		ours := j.Session(j.m).ID()
		var creates atomic.Int64
		last := j.HoldRequest(func(r zktest.Request) bool {
			return r.Op == zktest.OpCreate && r.Session == ours && creates.Add(1) == int64(len(jointPaths))
		})
		held = nil
		locked := j.lock() // the others have their turns
		j.Must(j.Expire(j.Context(), ours))
		last.Release()
		j.Must(locked.Err())
		if len(held) != len(jointPaths) {
			j.Errorf("told that %q are held", held)
		}
		j.Must(j.all.Unlock())
		j.want("in the end", 0, 0, 0)
	}, session.WithTrace(session.Trace{Hold: func(_ context.Context, h session.HoldInfo) func(error) {
		held = append(held, h.Node)
		return nil
	}}))
}

// When the first or the last of the locks is lost, the MultiLock is lost at once. The other locks are kept until the
// release, for the work that may still be going on. Do reports the loss also if the release of another lock is not
// confirmed yet, which it does not report.
func TestMultiLostAsAWhole(t *testing.T) {
	for _, lost := range []int{0, 2} {
		takeJointly(t, func(j *joint) {
			l, err := j.all.Acquire(j.Context())
			j.Must(err)
			work, cancel := l.Context(j.Context())
			defer cancel()
			j.Pass(time.Second) // they watch their nodes by now
			j.Remove(l.Leases()[lost].Path())
			j.Await(l.Done())
			j.Await(work.Done())
			j.Want("the cause", context.Cause(work), session.ErrLost)
			j.Must(l.Leases()[1].Err())
			j.WantNodes("before the release", "/b", 1)
			j.Want("Release", l.Release(j.Context()), session.ErrLost)
			j.want("after the release", 0, 0, 0)
			j.Want("Err after the release", l.Err(), session.ErrLost)

			j.Want("Do", j.all.Do(j.Context(), func(inside context.Context) error {
				j.Pass(time.Second)
				j.Remove(j.Nodes(jointPaths[lost])[0])
				j.Await(inside.Done())
				j.Cut()
				return nil
			}), session.ErrLost)
			j.Refuse(false)
			j.Pass(5 * time.Second)
			j.want("in the end", 0, 0, 0)
		})
	}
}

// MultiLeaseFrom returns the leases of all locks from the context of a Do, in the order of Multi's arguments. It returns none
// while some of the locks are not yet taken. A MultiLease that was released hears no more of requests for a place that
// goroutines share, and which the next one has: it would stay in memory for as long as the place.
func TestMultiLeases(t *testing.T) {
	run(t, func(w *world) {
		none := func(ctx context.Context) {
			if l, ok := zklock.MultiLeaseFrom(ctx); ok {
				t.Errorf("a lease before there is one: %v", l)
			}
		}
		none(w.Context())
		m := w.Connect(session.WithTrace(session.Trace{
			Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
				none(ctx)
				return ctx, nil
			},
		}))
		w.Must(newMulti(t, newMutex(t, m, "/b"), newMutex(t, m, "/a")).Do(w.Context(), func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			l, ok := zklock.MultiLeaseFrom(ctx)
			if !ok || len(l.Leases()) != 2 || path.Dir(l.Leases()[0].Path()) != "/b" {
				t.Errorf("leases %v, %v", l, ok)
			}
			return l.Err()
		}))

		all := newMulti(t, newMutex(t, m, lockPath, lazy))
		first, err := all.Acquire(w.Context())
		w.Must(err)
		w.Must(first.Release(w.Context()))
		second, err := all.Acquire(w.Context())
		w.Must(err)
		node := second.Leases()[0].Path()
		if node != first.Leases()[0].Path() {
			t.Fatal("the place was not kept, and nobody else wants the lock")
		}
		w.Pass(time.Second)
		w.Must(zklock.Revoke(w.Context(), w.Connect(), node))
		w.Await(second.Revoked())
		if expect.Closed(first.Revoked()) {
			t.Error("told of a request for what was released")
		}
	})
}
