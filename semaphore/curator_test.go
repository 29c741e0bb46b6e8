package semaphore_test

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// uuid begins the name of a contender's node.
const uuid = `^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`

var (
	leaseName = regexp.MustCompile(uuid + `-lease-\d{10}$`)
	lockName  = regexp.MustCompile(uuid + `-lock-\d{10}$`)
)

// atCurators wants so many nodes in both directories of Curator's layout, with the names of Curator's.
func (w world) atCurators(inLeases, inLocks int) {
	w.T.Helper()
	w.WantNodes("of the leases", leases, inLeases)
	w.WantNodes("at the gate", locks, inLocks)
	for dir, name := range map[string]*regexp.Regexp{leases: leaseName, locks: lockName} {
		for _, node := range w.Nodes(dir) {
			if !name.MatchString(path.Base(node)) {
				w.Errorf("node %s", node)
			}
		}
	}
}

// all returns the nodes of all contenders, of both layouts.
func (w world) all() []string { return slices.Concat(w.Nodes(dir), w.Nodes(locks), w.Nodes(leases)) }

// Nodes are in Curator's places. A holder has a node among the leases and none among the locks any more. The first waiter
// has one of each, and the waiters behind it have one among the locks. No data has a limit. A cancelled call leaves nothing
// behind, and the next takes its place.
func TestCuratorNodes(t *testing.T) {
	run(t, func(w world) {
		w.Make(locks, "")
		w.Make(leases, "10.0.0.7") // a user may set such data
		s := w.sem(2, curators)
		held := []*queue.Lease{w.take(s, 1), w.take(s, 1)}
		w.atCurators(2, 0)
		for node, want := range map[string]string{dir: "", leases: "10.0.0.7", locks: ""} {
			if data := w.Data(node); data != want {
				t.Errorf("data of %s: %q", node, data)
			}
		}
		var calls []*call
		for i := range 3 {
			calls = append(calls, w.begin(w.sem(2, curators), 1))
			w.atCurators(3, i+1)
		}
		all, err := s.Contenders(w.Context())
		w.Must(err)
		var holders []bool
		for _, c := range all {
			holders = append(holders, c.Holder)
		}
		if !slices.Equal(holders, []bool{true, true, false, false, false}) {
			t.Errorf("contenders hold: %v", holders)
		}
		w.busy(s, 1)
		for i, at := range []int{1, 0} { // among the locks, and among the leases; the last call is there then
			calls[at].Cancel()
			w.Want("a cancelled call", calls[at].Err(), context.Canceled)
			w.atCurators(3, 2-i)
		}
		calls[2].Waits("two are held of two")
		w.release(held[1])
		l := calls[2].Get()
		w.atCurators(2, 0)
		w.release(held[0], l)
		w.atCurators(0, 0)
	})
}

// A node whose name asks for three leases in the semaphore's own way is one lease here, as it is to Curator. Servers remove
// the directory of the gate when it is empty, while leases are held.
func TestCuratorCountsNodes(t *testing.T) {
	run(t, func(w world) {
		s := w.sem(2, curators)
		l := w.take(s, 1)
		w.Forge(leases, "x3-lease-")
		w.busy(s, 1)
		w.release(l)
		w.take(s, 1)
		w.Remove(locks)
		if all, err := s.Contenders(w.Context()); err != nil || len(all) != 2 || !all[0].Holder || !all[1].Holder {
			t.Errorf("%+v, %v: want both holders", all, err)
		}
	})
}

// ctx ends when the lease is granted, but the server has not yet confirmed the release of the gate. That release goes on by
// itself. The lease is returned if it is known by then that the path has no contender of the other layout, and given up
// otherwise.
func TestCuratorGatePending(t *testing.T) {
	run(t, func(w world) {
		held := w.HoldReply(zktest.On(zktest.OpDelete, locks))
		c := w.begin(w.sem(1, curators), 1)
		w.Await(held.Hit())
		c.Waits("the server has not answered")
		c.Cancel()
		err := c.Err()
		held.Release()
		if err == nil {
			w.atCurators(1, 0)
			w.release(c.Got)
		} else {
			w.Want("Acquire", err, context.Canceled)
		}
		w.Pass(time.Second)
		w.atCurators(0, 0)
	})
}

// If the server lets a client create nodes at the gate but not delete them, the call returns the refusal, and no lease.
func TestCuratorGateRefused(t *testing.T) {
	run(t, func(w world) {
		w.Make(leases, "")
		w.Make(locks, "", zk.PermAll&^zk.PermDelete)
		m := w.Connect()
		w.Want("Acquire", expect.Err(w.semOn(m, 2, curators).Acquire(w.Context())), zk.ErrNoAuth)
		w.WantNodes("of the leases", leases, 0)
		w.Must(m.Close())
		w.atCurators(0, 0)
	})
}

// deadline is a context that ends on demand, like one whose deadline passes.
type deadline struct {
	context.Context
	over chan struct{}
}

func (d *deadline) Done() <-chan struct{} { return d.over }
func (d *deadline) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// The caller's deadline passes right after the gate was lost. The call returns the caller's error, and not that of the wait
// that ended with the gate.
func TestTimeRunsOutAfterGateLost(t *testing.T) {
	run(t, func(w world) {
		ctx := &deadline{w.Context(), make(chan struct{})}
		m := w.Connect(session.WithTrace(session.Trace{
			Acquire: func(c context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
				return c, func(session.AcquireResult) {
					if a.Kind == "semaphore" {
						close(ctx.over)
					}
				}
			},
		}))
		w.take(w.sem(1, curators), 1)
		s := w.semOn(m, 1, curators)
		waits := w.Go(func() error { return s.Lock(ctx) })
		w.atCurators(2, 1)
		w.Remove(w.Nodes(locks)[0])
		w.Want("Lock", waits.Err(), context.DeadlineExceeded)
	})
}

// layout returns a semaphore in one of the layouts.
func (w world) layout(m *session.Manager, curator bool) func() *call {
	s := w.semOn(m, 1)
	if curator {
		s = w.semOn(m, 1, curators)
	}
	return func() *call { return w.begin(s, 1) }
}

// The two layouts exclude each other at a path, whichever comes first, whichever directories were there before, and whichever
// empty ones the servers have removed since. The one that comes second gets a conflict, and leaves nothing behind.
func TestLayoutsMeet(t *testing.T) {
	for _, before := range [][]string{nil, {dir}, {locks}, {leases}, {locks, leases}} {
		for _, curatorsFirst := range []bool{false, true} {
			for _, reaped := range [][]string{nil, {locks}, {leases}, {leases, locks}} {
				t.Run(fmt.Sprintf("%q, Curator's first %v, reaped %q", before, curatorsFirst, reaped), func(t *testing.T) {
					run(t, func(w world) {
						for _, node := range before {
							w.Make(node, "")
						}
						reap := func() {
							for _, node := range reaped {
								_ = w.DeleteNode(node) // if it is there, and empty
							}
						}
						l := w.layout(w.Connect(), curatorsFirst)().Get()
						reap()
						second := w.sem(1)
						if !curatorsFirst {
							second = w.sem(1, curators)
						}
						w.Want("TryAcquire", expect.Err(second.TryAcquire(w.Context())), queue.ErrConflict)
						reap()
						w.Want("Acquire", expect.Err(second.Acquire(w.Context())), queue.ErrConflict)
						if all := w.all(); !slices.Equal(all, []string{l.Path()}) {
							t.Errorf("contenders %q, want %s alone", all, l.Path())
						}
						w.release(l)
						w.release(w.take(second, 1)) // the directories alone are no conflict
					})
				})
			}
		}
	}
}

// A contender at Curator's gate, without a lease, is one too.
func TestOwnLayoutMeetsTheGate(t *testing.T) {
	for _, before := range [][]string{{locks}, {locks, leases}} {
		run(t, func(w world) {
			for _, node := range before {
				w.Make(node, "")
			}
			waits := w.Forge(locks, queue.PrefixLock)
			w.Want("Acquire", w.begin(w.sem(1), 1).Err(), queue.ErrConflict)
			if all := w.all(); !slices.Equal(all, []string{waits}) {
				t.Errorf("contenders %q", all)
			}
		})
	}
}

// Java takes a lease and leaves the gate while we look: we look at the gate first, and then at the leases, also if there was no
// directory of leases when we came.
func TestOwnLayoutLooksBehindTheGate(t *testing.T) {
	run(t, func(w world) {
		w.Make(locks, "")
		java := w.Forge(locks, queue.PrefixLock)
		look := w.HoldRequest(listing(locks))
		c := w.begin(w.sem(1), 1)
		w.Await(look.Hit())
		w.Make(leases, "")
		lease := w.Forge(leases, queue.PrefixLease)
		w.Remove(java)
		look.Release()
		w.Want("AcquireN", c.Err(), queue.ErrConflict)
		if all := w.all(); !slices.Equal(all, []string{lease}) {
			t.Errorf("contenders %q", all)
		}
	})
}

// One comes while the other is on its way. The one whose node stands later sees the other.
func TestLayoutsMeetOnTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		curators bool // the first comes in Curator's layout
		before   zktest.Match
		sees     int // the first (0) or the second (1) sees the other
	}{
		"Curator's looks for us later": {true, listing(dir), 1},
		"Curator's is at the gate":     {true, zktest.On(zktest.OpCreate, leases), 1},
		"we look later":                {false, listing(dir), 1},
		"we come later":                {false, zktest.On(zktest.OpCreate, dir+"/_c_"), 0},
	} {
		run(t, func(w world) {
			w.Make(locks, "")
			w.Make(leases, "")
			m := w.Connect()
			held := w.HoldRequest(w.of(m, c.before))
			first := w.layout(m, c.curators)()
			w.Await(held.Hit())
			second := w.layout(w.Connect(), !c.curators)()
			_ = second.Err()
			held.Release()
			calls := []*call{first, second}
			w.Want(name+": who sees the other", calls[c.sees].Err(), queue.ErrConflict)
			in := calls[1-c.sees].Get()
			w.Must(in.Err())
			if all := w.all(); !slices.Equal(all, []string{in.Path()}) {
				t.Errorf("%s: contenders %q, want %s alone", name, all, in.Path())
			}
		})
	}
}
