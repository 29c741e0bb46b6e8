package semaphore_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A lower limit revokes no lease. Resize waits in the queue for what is to go, first come, first served, and holds it until
// the limit is set.
func TestResizeDown(t *testing.T) {
	run(t, func(w world) {
		s := w.sem(4)
		var held []*queue.Lease
		for range 4 {
			held = append(held, w.take(s, 1))
		}
		ahead := w.begin(w.sem(4), 1)
		done := w.resize(w.sem(4), 2)
		behind := w.begin(w.sem(4), 1)
		w.release(held[0])
		inAhead := ahead.Get()
		w.release(held[1])
		w.busy(s, 1)
		done.Waits("three are held of four")
		behind.Waits("it comes after Resize, which waits")
		w.limit(s, 4)
		w.release(held[2])
		w.Must(done.Err())
		w.limit(s, 2)
		behind.Waits("two are held of two")
		w.busy(s, 1)
		w.release(held[3])
		w.release(behind.Get(), inAhead)
		w.release(w.take(s, 2))
	})
}

// A waiter for more leases than the new limit gets an error, and keeps out no other contender. One that came before Resize is
// let in by the old limit.
func TestResizeBelowRequest(t *testing.T) {
	run(t, func(w world) {
		s := w.sem(3)
		held := w.take(s, 1)
		before := w.begin(w.sem(3), 3)
		done := w.resize(s, 2)
		large := w.begin(w.sem(3), 3)
		small := w.begin(w.sem(3), 1)
		w.release(held)
		all := before.Get()
		done.Waits("three are held of three")
		w.release(all)
		w.Must(done.Err())
		w.says(large.Err(), session.ErrInvalid, "weight 3: the limit is 2")
		in := small.Get()
		later := w.sem(3) // does not know the limit
		w.Want("TryAcquireN of 3 of 2", expect.Err(later.TryAcquireN(w.Context(), 3)), session.ErrInvalid)
		w.Want("AcquireN of 3 of 2", expect.Err(later.AcquireN(w.Context(), 3)), session.ErrInvalid)
		w.contenders(1)
		w.release(in)
	})
}

// A Resize that waits gives up when its context ends or when it has waited for as long as it may, says who was ahead, and
// leaves nothing behind. The limit is as before.
func TestResizeGivesUp(t *testing.T) {
	run(t, func(w world) {
		s := w.sem(2)
		held := w.take(s, 2)
		ended, cancel := context.WithCancel(w.Context())
		defer cancel()
		for _, c := range []struct {
			ctx  context.Context
			want error
		}{{ended, context.Canceled}, {queue.WithMaxWait(w.Context(), time.Second), queue.ErrMaxWait}} {
			done := w.Go(func() error { return w.sem(2).Resize(c.ctx, 1) })
			waits := w.begin(w.sem(2), 1)
			cancel()
			err := done.Err()
			w.says(err, c.want, "resize "+dir)
			if wait := new(queue.WaitError); !errors.As(err, &wait) {
				t.Errorf("%v does not say why it had to wait", err)
			}
			w.limit(s, 2)
			w.contenders(2)
			w.release(held)
			held = waits.Get()
			w.release(held)
			held = w.take(s, 2)
		}
	})
}

// Two that change the limit at the same time come one after the other. One that waits for what is to go begins again when the
// limit is another by then.
func TestResizeBehindAnother(t *testing.T) {
	run(t, func(w world) {
		s := w.sem(4)
		one, three := w.take(s, 1), w.take(s, 3)
		lower := w.resize(w.sem(4), 2)
		w.Must(s.Resize(w.Context(), 6))
		w.asksFor("-x4-lease-")
		late := w.sem(4)
		w.busy(late, 1)
		w.release(three)
		w.Must(lower.Err())
		w.limit(s, 2)
		w.release(w.take(late, 1), one)
		w.contenders(0)
	})
}

// asksFor wants a contender in whose name is this.
func (w world) asksFor(weight string) {
	w.T.Helper()
	if nodes := w.Nodes(dir); !slices.ContainsFunc(nodes, func(node string) bool { return strings.Contains(node, weight) }) {
		w.Errorf("nobody asks for %s: %q", weight, nodes)
	}
}

// One that waits for what is to go keeps its place when another change ahead of it has lowered the limit. So changes that go on
// keep nobody waiting.
func TestResizeKeepsItsPlace(t *testing.T) {
	run(t, func(w world) {
		s, m := w.sem(6), w.Connect()
		one, three := w.take(s, 1), w.take(s, 3)
		first, second := w.resize(w.sem(6), 3), w.resize(w.semOn(m, 6), 1)
		w.release(one)
		w.Must(first.Err())
		w.limit(s, 3)
		w.release(three)
		w.Must(second.Err())
		w.limit(s, 1)
		w.contenders(0)
		expect.Requests(t, "creates of the second", w.Server, w.of(m, zktest.On(zktest.OpCreate, dir)), 1)
	})
}

// The limit of Resize counts, whatever New is given, until ResetLimit. It stays when nobody uses the semaphore. The limit that
// New was given does not.
func TestResizeOverridesNew(t *testing.T) {
	run(t, func(w world) {
		ctx, s := w.Context(), w.sem(3)
		w.Must(s.Resize(ctx, 2)) // before the first contender: it makes the directory
		if got := w.Data(dir); got != `{"maxLeases":2,"version":2}` {
			t.Errorf("data %s", got)
		}
		for _, limit := range []int{1, 2, 7} {
			s := w.sem(limit)
			l := w.take(s, 1)
			w.release(w.take(s, 1))
			rest := w.take(s, 1)
			w.busy(s, 1)
			if all, err := s.Contenders(ctx); err != nil || len(all) != 2 || !all[1].Holder {
				t.Errorf("contenders %+v, %v", all, err)
			}
			w.release(l, rest)
		}
		w.says(expect.Err(s.AcquireN(ctx, 3)), session.ErrInvalid, ": the limit is 2")
		w.ReapContainers()
		w.limit(w.sem(7), 2)
		w.Must(s.ResetLimit(ctx))
		w.release(w.take(s, 3))
		w.Must(s.ResetLimit(ctx)) // no error, although no limit was set
		_, err := w.sem(2).TryAcquire(ctx)
		w.Want("the limit of Resize, after it was taken back", err, queue.ErrConflict)
		w.ReapContainers()
		w.limit(w.sem(7), 7)
	})
}

// A Resize succeeds although its request or its reply is lost. It keeps its node until it knows what became of the request.
func TestResizeInDoubt(t *testing.T) {
	for what, fault := range map[string]func(*zktest.Server, zktest.Match) *zktest.Fault{
		"the set is lost": (*zktest.Server).CutBefore, "its reply is lost": (*zktest.Server).CutAfterCommit,
	} {
		for _, to := range []int{1, 3} {
			run(t, func(w world) {
				s := w.sem(2)
				l := w.take(s, 1)
				w.ResetRequests()
				multi := numbered(zktest.On(zktest.OpMulti, dir+"/"))
				lost, again := fault(w.Server, multi(1)), w.HoldRequest(multi(2))
				done := w.resize(s, to)
				w.Await(lost.Hit())
				w.Await(again.Hit())
				done.Waits("it does not know whether the limit is set")
				made, gone := w.Count(zktest.On(zktest.OpCreate, dir)), w.Count(zktest.On(zktest.OpDelete, dir))
				if made != 1 || gone != 0 {
					t.Errorf("%s: %d nodes were made, and %d deleted: want the one that stands", what, made, gone)
				}
				again.Release()
				w.Must(done.Err())
				w.limit(s, to)
				w.contenders(1)
				w.release(l)
			})
		}
	}
}

// A Resize that is in doubt when its caller gives up says both.
func TestResizeInDoubtIsCancelled(t *testing.T) {
	run(t, func(w world) {
		ctx, cancel := context.WithCancel(w.Context())
		m := w.Connect(session.WithTrace(session.Trace{
			Request: func(ctx context.Context, _ session.RequestInfo) (context.Context, func(error)) {
				return ctx, func(err error) {
					if errors.Is(err, zk.ErrConnectionClosed) {
						cancel()
					}
				}
			},
		}))
		l := w.take(w.sem(2), 1)
		w.CutBefore(w.of(m, zktest.On(zktest.OpMulti, dir+"/")))
		err := w.semOn(m, 2).Resize(ctx, 3)
		w.says(err, context.Canceled)
		w.says(err, session.ErrUncertain)
		w.release(l)
	})
}

// numbered counts the requests that a match finds. The result matches the n-th of them.
func numbered(match zktest.Match) func(n int) zktest.Match {
	type request struct {
		conn any
		xid  int32
	}
	var mu sync.Mutex
	numbers := make(map[request]int)
	return func(n int) zktest.Match {
		return func(r zktest.Request) bool {
			if !match(r) {
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			is := request{r.Conn, r.Xid}
			if numbers[is] == 0 {
				numbers[is] = len(numbers) + 1
			}
			return numbers[is] == n
		}
	}
}

// A holds all leases, and B and C wait. C is let in when A leaves. B, which is ahead of C, does not know yet that it may go.
// Resize counts B, and so waits: every contender that goes in by the old limit is in before the new one is set.
func TestResizeWhileOneIsAway(t *testing.T) {
	run(t, func(w world) {
		s, m := w.sem(2), w.Connect()
		a := w.take(s, 2)
		b, c := w.begin(w.semOn(m, 2), 1), w.begin(w.sem(2), 1)
		news := w.HoldReply(w.of(m, zktest.Any(zktest.OpNotification)))
		w.release(a)
		inC := c.Get()
		b.Waits("it has not heard of A")
		done, late := w.resize(s, 1), w.begin(w.sem(2), 1)
		done.Waits("B may go by the limit of two")
		news.Release()
		inB := b.Get()
		done.Waits("two are held of two")
		w.release(inC)
		w.Must(done.Err())
		late.Waits("one is held of one")
		w.release(inB)
		w.release(late.Get())
	})
}

// A Resize comes between the read and the write of a ResetLimit. The call that writes last counts as a whole: either the
// limit is New's and the directory may go, or neither.
func TestResizeWhileResetLimit(t *testing.T) {
	run(t, func(w world) {
		w.Make(dir, "")
		s, m := w.sem(2), w.Connect()
		w.Must(s.Resize(w.Context(), 3))
		held := w.HoldRequest(w.of(m, zktest.On(zktest.OpMulti, dir+"/")))
		done := w.Go(func() error { return w.semOn(m, 2).ResetLimit(w.Context()) })
		w.Await(held.Hit())
		w.Must(s.Resize(w.Context(), 5))
		w.limit(s, 5)
		held.Release()
		w.Must(done.Err())
		w.limit(s, 2)
		if names, _, err := w.Admin().Children(w.Context(), dir); err != nil || len(names) != 0 {
			t.Errorf("%q, %v keep the directory", names, err)
		}
	})
}

// The counter of a directory is used up, and a limit of Resize keeps the directory. A higher limit can be set all the same.
// ResetLimit lets the directory go, so that counting starts again.
func TestResizeAtTheEndOfTheCounter(t *testing.T) {
	run(t, func(w world) {
		s := w.sem(2)
		w.Must(s.Resize(w.Context(), 5))
		l := w.take(s, 1)
		w.Must(testserver.Switch(w.Server).SetSequence(dir, math.MaxInt32))
		w.Must(s.Resize(w.Context(), 6))
		w.Want("Resize to fewer", s.Resize(w.Context(), 4), queue.ErrSequence)
		w.limit(s, 6)
		w.Want("ResetLimit", s.ResetLimit(w.Context()), queue.ErrSequence)
		w.limit(s, 6)
		w.release(l)
		w.Pass(time.Second)
		w.ReapContainers()
		w.release(w.take(s, 1)) // in a new directory
		w.limit(s, 2)
	})
}

// A call that begins after a Resize has returned uses its limit, whatever a concurrent call has read before.
func TestResizeIsNotForgotten(t *testing.T) {
	run(t, func(w world) {
		w.Make(dir, `{"maxLeases":2}`)
		goOn := make(chan struct{})
		var held atomic.Bool
		s := w.semOn(w.Connect(session.WithTrace(session.Trace{
			Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
				if r.Op != "getData" || r.Path != dir {
					return ctx, nil
				}
				return ctx, func(error) {
					if held.CompareAndSwap(false, true) {
						<-goOn
					}
				}
			},
		})), 2)
		got := w.begin(s, 1)
		w.Must(s.Resize(w.Context(), 5))
		close(goOn)
		got.Get()
		w.take(s, 4)
	})
}

// A stale limit lets nobody pass. In each of the schedules below the limit goes from two to one while H holds one of the leases,
// and X comes behind the node of Resize. X knows that node and the limit of two. Resize sets the limit of one and leaves.
