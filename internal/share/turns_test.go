package share

import (
	"context"
	"errors"
	"path"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// After the last hand-over of a turn, other processes have their turn, and the waiters that remain are
// behind them. The token grows from turn to turn.
func TestBound(t *testing.T) {
	run(t, func(w world) {
		p, q := w.hands(1), w.hands(1)
		first := p.hold()
		second, third, other := p.begin(), p.begin(), q.begin()
		w.nodes(2)
		w.giveBack(first)
		l := second.Get()
		mine := w.token(l) // a lease that was released may not know it
		w.ResetRequests()
		answer := w.HoldReply(p.of(zktest.OpDelete))
		released := l.StartRelease(w.Context(), true)
		w.Pass(0)
		// Delete, create and listing leave in one flight, in this order.
		var ops []zktest.Op
		for _, r := range w.Requests() {
			if p.of()(r) {
				ops = append(ops, r.Op)
			}
		}
		if len(ops) < 3 || ops[0] != zktest.OpDelete || ops[len(ops)-1] != zktest.OpGetChildren2 {
			t.Errorf("requests %v", ops)
		}
		answer.Release()
		w.Must(released.Wait(w.Context()))
		o := other.Get()
		w.nodes(2)
		third.Waits("another process holds")
		b := w.token(o)
		w.giveBack(o)
		if c := w.token(third.Get()); mine >= b || b >= c {
			t.Errorf("tokens %d, %d, %d", mine, b, c)
		}
		w.giveBack(third.Got)
		w.nodes(0)
	})
}

// TryAcquire returns queue.ErrBusy without a request while this process holds. A waiter that comes during the try gets the
// lock from it, or contends after it.
func TestTry(t *testing.T) {
	run(t, func(w world) {
		p, q := w.hands(10), w.hands(10)
		try := func(ctx context.Context) (*queue.Lease, error) { return p.Acquire(ctx, true) }
		l := p.hold()
		w.ResetRequests()
		w.Want("TryAcquire", expect.Err(try(w.Context())), queue.ErrBusy)
		expect.Requests(t, "a busy try", w.Server, p.of(zktest.OpGetChildren2), 0)
		w.giveBack(l)
		for _, taken := range []bool{false, true} {
			var o *queue.Lease
			if taken {
				o = q.hold()
			}
			listing := w.HoldRequest(p.of(zktest.OpGetChildren2))
			tried := w.begin(try)
			p.is(trying)
			next := p.begin()
			p.begin().Gives()
			listing.Release()
			if taken {
				w.Want("TryAcquire", tried.Err(), queue.ErrBusy)
				w.giveBack(o)
			} else {
				w.giveBack(tried.Get())
			}
			if same := next.Get().Path() == path.Join(dir, path.Base(pathOf(tried.Got))); same == taken {
				t.Errorf("taken %v: handed on %v", taken, same)
			}
			w.giveBack(next.Got)
		}
		w.nodes(0)
	})
}

func pathOf(l *queue.Lease) string {
	if l == nil {
		return "none"
	}
	return l.Path()
}

// A waiter that gives up says which hold of its process it has waited for. Its text is that of package zklock's TestWaitErrors.
func TestWhyItWaited(t *testing.T) {
	run(t, func(w world) {
		p := w.hands(1)
		l := p.hold()
		var wait *queue.WaitError
		_, err := p.Acquire(queue.WithMaxWait(w.Context(), soon), false)
		if !errors.As(err, &wait) || wait.Ahead.Path != l.Path() || !wait.Ahead.Own || wait.Ahead.HeldSince.IsZero() {
			t.Errorf("%v: %+v", err, wait)
		}
		w.giveBack(l)
	})
}

// An acquisition that was called back, because no waiter was left, takes its time to end. A waiter that comes in the
// meantime gets the lock: by another one if the first has failed, and by the first if that was granted at the moment of the
// call-back.
func TestCalledBack(t *testing.T) {
	for _, granted := range []bool{false, true} {
		run(t, func(w world) {
			proceed, ended := make(chan struct{}), make(chan error, 10)
			holder := w.hands(1)
			h := holder.hold()
			p := w.hands(1, session.WithTrace(session.Trace{
				Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
					return ctx, func(err error) {
						ended <- err
						<-proceed // which holds the contender up at the end of its wait
					}
				},
			}))
			first := p.begin()
			if granted {
				w.giveBack(h)
				w.Must(<-ended)
			}
			first.Cancel()
			w.Pass(0)
			second := p.begin()
			close(proceed)
			first.Gives()
			if !granted {
				second.Waits("another process holds")
				w.nodes(2)
				w.giveBack(h)
			}
			w.giveBack(second.Get())
			w.giveBack(p.hold())
			w.nodes(0)
		})
	}
}

// The goroutine that acquires for all has the context of the first waiter, also for hooks. If a hook blocks with it, the last
// waiter does not wait for that when its own context ends.
func TestCalledBackInAHook(t *testing.T) {
	run(t, func(w world) {
		goOn := make(chan struct{})
		p := w.hands(1, session.WithTrace(session.Trace{
			Request: func(ctx context.Context, i session.RequestInfo) (context.Context, func(error)) {
				if i.Op == "create" {
					<-goOn
				}
				return ctx, nil
			},
		}))
		first, second := p.begin(), p.begin()
		first.Gives()
		if took := bubble.Took(second.Gives); took > soon {
			t.Errorf("a call waits for another caller's hook for %v after its context has ended", took)
		}
		close(goOn)
	})
}

// The session may have only one node, that of the present turn. The waiters still get the next turn:
// their contender enters when the node is gone, in whatever way the turn ends, and also if some of them give up.
func TestAtLimitOfNodes(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		run(t, func(w world) {
			p := w.hands(1, session.WithNodeLimits(1, 1<<20))
			first := p.hold()
			second, third := p.begin(), p.begin()
			w.giveBack(first)
			l := second.Get()
			w.token(l)
			if deleted {
				w.Remove(l.Path())
				w.Want("the lost lease", l.Err(), session.ErrLost)
			} else {
				w.giveBack(l)
			}
			w.giveBack(third.Get())
			w.nodes(0)
		})
	}
	for _, nodes := range []int{1, 2} {
		run(t, func(w world) {
			p := w.hands(1, session.WithNodeLimits(nodes, 1<<20))
			w.Delay(time.Millisecond)
			for range 20 {
				one := p.hold()
				two, three := p.begin(), p.begin()
				w.giveBack(one)
				l := two.Get()
				four := p.begin()
				removal := l.StartRelease(w.Context(), true)
				three.Cancel()
				if err := three.Err(); err == nil {
					w.giveBack(three.Got)
				} else {
					w.Want("the cancelled call", err, context.Canceled)
				}
				five := p.begin()
				w.giveBack(four.Get())
				w.giveBack(five.Get())
				w.Must(removal.Wait(w.Context()))
			}
			w.Delay(0)
			w.Pass(soon)
			w.nodes(0)
		})
	}
}

// A goroutine that comes while a turn is left waits until the delete was sent: the session may have one node.
func TestDeleteLeavesFirst(t *testing.T) {
	run(t, func(w world) {
		var p *process
		next := make(chan error, 1)
		comes := true
		p = w.hands(1, session.WithNodeLimits(1, 1<<20), session.WithTrace(session.Trace{
			Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
				if r.Op == "delete" && comes {
					comes = false
					go func() {
						_, err := p.Acquire(w.Context(), false)
						next <- err
					}()
					if time.Sleep(soon); len(next) > 0 {
						t.Errorf("it does not wait: %v", <-next)
					}
				}
				return ctx, nil
			},
		}))
		w.giveBack(p.hold())
		w.Must(<-next)
	})
}

// A turn that was asked back is the last of its kind before its holder can know: a holder that gives the lock back because it
// has heard of the request never gives it to a goroutine of its process.
func TestRevokedIsLast(t *testing.T) {
	for _, waited := range []bool{false, true} {
		run(t, func(w world) {
			other, p := w.hands(1), w.hands(100)
			var l *queue.Lease
			if waited { // the watch on the node is there, and its event comes before the new data
				o := other.hold()
				first := p.begin()
				w.giveBack(o)
				l = first.Get()
			} else { // the data that comes with the watch asks already
				watch := w.HoldRequest(p.of(zktest.OpGetData))
				l = p.hold()
				w.Await(watch.Hit())
				defer watch.Release()
				w.Write(l.Path(), queue.RevokeMessage)
				time.AfterFunc(soon, watch.Release)
			}
			last := make(chan bool, 1)
			turn := p.present()
			defer l.AfterRevoke(func() { last <- turn.IsLast() })()
			next := p.begin()
			if waited {
				w.Write(l.Path(), queue.RevokeMessage)
			}
			if !<-last {
				t.Error("the holder knows of the request, and the turn can be handed over")
			}
			w.giveBack(l)
			if next.Get().Path() == l.Path() {
				t.Error("handed over")
			}
		})
	}
}

// A turn that is granted when nobody waits any more is left.
func TestGrantedToNobody(t *testing.T) {
	for name, open := range map[string]func(world) *process{
		"kept":    func(w world) *process { return w.keeps() },
		"readers": world.readers,
	} {
		run(t, func(w world) {
			r := mutex
			if name == "readers" {
				r = writer
			}
			theirs, err := w.queue(w.Connect(), dir).Acquire(w.Context(), r)
			w.Must(err)
			p := open(w)
			mine := p.begin()
			p.mu.Lock() // the acquisition is granted, and cannot tell
			w.giveBack(theirs)
			p.nextLocked() <- grant{err: context.Canceled}
			p.mu.Unlock()
			w.Want(name, mine.Err(), context.Canceled)
			w.nodes(0)
			p.is(idle)
		})
	}
}
