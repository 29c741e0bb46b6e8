package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// At the instant at which the session's time runs out, before any of its timers has run, the context
// of a lease says that the lease is lost, and is done.
func TestContextComputedWhenAsked(t *testing.T) {
	for what, look := range map[string]func(ctx context.Context) error{
		"Err":   context.Context.Err,
		"Cause": context.Cause,
		"derived": func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			return ctx.Err()
		},
	} {
		run(t, func(w world) {
			q := w.queue()
			inside, cancel := w.acquire(q).Context(w.Context())
			defer cancel()
			early, cancelEarly := context.WithCancel(inside)
			defer cancelEarly()
			w.Pass(time.Second)
			s := w.Session(q.Manager())
			w.Blackhole(zktest.Both)
			time.Sleep(s.Remaining() - time.Nanosecond)
			if err := look(inside); err != nil {
				t.Fatalf("%s, before the end: %v", what, err)
			}
			time.Sleep(time.Nanosecond)
			if look(inside) == nil {
				t.Errorf("%s: the first look says that the lease is held", what)
			}
			for _, ctx := range []context.Context{inside, early} {
				w.Want(what, ctx.Err(), context.Canceled)
				w.Want(what, context.Cause(ctx), session.ErrLost)
				if !expect.Closed(ctx.Done()) {
					t.Errorf("%s: Done is open", what)
				}
			}
			w.Heal()
		})
	}
}

// The context of a lease is made from its parent, ends with that and with its cancel function, and neither ends the lease.
// LeaseFrom returns the lease of a context and of contexts derived from it. The innermost lease counts, even after it has
// ended.
func TestLeaseFrom(t *testing.T) {
	run(t, func(w world) {
		want := func(what string, ctx context.Context, want *queue.Lease) {
			t.Helper()
			if got, ok := queue.LeaseFrom(ctx); got != want || ok != (want != nil) {
				t.Errorf("%s: lease %v, %v", what, got, ok)
			}
		}
		want("no lease", w.Context(), nil)
		q, err := queue.New(w.Connect(), "/locks/other")
		w.Must(err)
		one, other := w.acquire(w.queue()), w.acquire(q)
		cause := errors.New("the parent's cause")
		parent, end := context.WithCancelCause(w.Context())
		outer, cancel := one.Context(parent)
		defer cancel()
		want("the lease's context", outer, one)
		derived, cancel := context.WithTimeout(context.WithoutCancel(outer), time.Hour)
		defer cancel()
		want("a context derived from it", derived, one)
		inner, cancel := other.Context(derived)
		defer cancel()
		want("a context of another lease within", inner, other)
		want("the context outside of that", derived, one)
		w.release(other)
		want("after the release", inner, other)
		end(cause)
		w.Await(outer.Done())
		w.Want("the end", context.Cause(outer), cause)
		w.Must(one.Err())
	})
}

// A write with the guard succeeds while the lease's node is there, and fails afterwards. A change of the node's data is no loss
// of the lock.
func TestGuard(t *testing.T) {
	for what, end := range map[string]func(w world, l *queue.Lease){
		"released": world.release, "deleted": func(w world, l *queue.Lease) { w.Remove(l.Path()) },
	} {
		run(t, func(w world) {
			q, l := w.queue(), (*queue.Lease)(nil)
			w.Make("/target", "old")
			l = w.acquire(q)
			write := func(data string) error {
				_, err := w.Session(q.Manager()).Multi(w.Context(), l.Guard(), &zk.SetDataRequest{Path: "/target", Data: []byte(data), Version: -1})
				return err
			}
			w.Must(write("new"))
			w.Write(l.Path(), "other")
			w.Must(write("newer"))
			end(w, l)
			w.Want(what, write("too late"), zk.ErrNoNode)
			if data := w.Data("/target"); data != "newer" {
				t.Errorf("%s: %q was written", what, data)
			}
		})
	}
}

// The request by which a holder watches its node ends with the lease, also if it is not answered. So does a Token that waits
// for it.
func TestEndOfAHoldThatIsNotWatched(t *testing.T) {
	run(t, func(w world) {
		contexts := make(chan context.Context, 1)
		q := w.queue(session.WithTrace(session.Trace{
			Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
				if r.Op == "getData" {
					contexts <- ctx
				}
				return ctx, nil
			},
		}))
		hold := w.HoldReply(w.of(q, zktest.OpGetData))
		l := w.acquire(q)
		token := w.Go(func() error { _, err := l.Token(w.Context()); return err })
		w.Await(hold.Hit())
		inFlight := <-contexts
		w.Must(inFlight.Err())
		ended, cancel := context.WithCancel(w.Context())
		cancel()
		_ = l.Release(ended) // the answer comes behind the one that is held
		w.Await(inFlight.Done())
		w.Want("the end of the request", context.Cause(inFlight), queue.ErrReleased)
		w.Want("Token", token.Err(), queue.ErrReleased)
		hold.Release()
		w.nodes("in the end", 0)
	})
}

// Fencing tokens grow from holder to holder, even if the directory was deleted and its sequence numbers
// start again, and whether or not the holder had to wait. A lease that has ended still returns its token if it knew it.
func TestTokenGrows(t *testing.T) {
	run(t, func(w world) {
		a, b := w.queue(), w.queue()
		var last int64
		grown := func(l *queue.Lease) {
			t.Helper()
			token := w.token(l)
			if _, stat, err := w.Admin().Get(w.Context(), l.Path()); err != nil || stat.Czxid != token || token <= last {
				t.Errorf("token %d after %d, czxid %v: %v", token, last, stat, err)
			}
			last = token
			w.release(l)
			if after := w.token(l); after != token {
				t.Errorf("after the release: %d", after)
			}
		}
		for range 3 {
			first := w.acquire(a)
			if !strings.HasSuffix(first.Path(), "0000000000") {
				t.Fatalf("the sequence has not begun again: %s", first.Path())
			}
			second := w.begin(b, ask)
			grown(first)
			grown(second.Get())
			w.Pass(time.Second)
			w.Remove(dir)
		}
	})
}

// Near the end of the sequence numbers, who leaves the directory empty removes it, so that counting starts again. Before that
// it stays, until the servers remove it.
func TestCountingStartsAgain(t *testing.T) {
	run(t, func(w world) {
		before := queue.RestartFrom
		queue.RestartFrom = 2
		t.Cleanup(func() { queue.RestartFrom = before })
		q := w.queue()
		for _, want := range []int32{0, 1, 2, 0} {
			l := w.acquire(q)
			if got := l.Turn().Holder().Sequence; got != want {
				t.Errorf("number %d, want %d", got, want)
			}
			w.release(l)
			w.Pass(0)
		}
	})
}

// A lock is granted in a session that lasts. The session ends after the answers that would let the contender go, while its
// policy decides. It goes on in the next session.
func TestGrantAsksTheClock(t *testing.T) {
	run(t, func(w world) {
		q := w.queue()
		s := w.Session(q.Manager())
		kind := queue.Mutex()
		decide := kind.Policy
		kind.Policy = func(me queue.Node) queue.Policy {
			if s.Err() == nil {
				w.Refuse(true)
				w.Disconnect()
				time.Sleep(2 * s.Timeout())
				w.Refuse(false)
			}
			return decide(me)
		}
		l := w.take(q, queue.Request{Kind: kind})
		if err := l.Err(); err != nil || l.Turn().Session() == s {
			t.Errorf("the lease: %v; granted by the session that has ended: %v", err, l.Turn().Session() == s)
		}
	})
}

// A call that gives up while it waits leaves nothing.
func TestWhoGivesUpLeavesNothing(t *testing.T) {
	run(t, func(w world) {
		w.acquire(w.queue())
		w.begin(w.queue(), ask).Gives()
		w.nodes("beside the holder", 1)
	})
}

// A try that is busy has written nothing.
func TestBusyTryWritesNothing(t *testing.T) {
	run(t, func(w world) {
		w.acquire(w.queue())
		w.ResetRequests()
		w.Want("a try", expect.Err(w.queue().TryAcquire(w.Context(), ask)), queue.ErrBusy)
		w.sent("a try", map[zktest.Op]int{zktest.OpCreate: 0, zktest.OpCreate2: 0, zktest.OpMulti: 0})
	})
}

// A request that the server refuses fails at once, and is not sent again. No node stays.
func TestNoAuthToAcquire(t *testing.T) {
	for op, perm := range map[zktest.Op]int32{zktest.OpCreate: zk.PermCreate, zktest.OpGetChildren2: zk.PermRead} {
		run(t, func(w world) {
			w.Remove(dir)
			w.Make(dir, "", zk.PermAll&^perm)
			w.ResetRequests()
			w.Want("Acquire", expect.Err(w.queue().Acquire(w.Context(), ask)), zk.ErrNoAuth)
			w.nodes("after the refusal", 0)
			if n := w.Count(zktest.On(op, dir)); n > 2 { // a listing with the create, and one after it
				t.Errorf("%d requests %v", n, op)
			}
		})
	}
}

// The holder is told that another client asks for the lock, also if it was asked before its node was watched, or while its
// connection breaks. A second request changes nothing, and the next holder is not told.
func TestRevoked(t *testing.T) {
	for what, revoke := range map[string]func(w world, q *queue.Queue, node string){
		"at once": func(w world, _ *queue.Queue, node string) { w.Write(node, queue.RevokeMessage) },
		"while the connection breaks": func(w world, q *queue.Queue, node string) {
			w.Pass(time.Second) // it watches its node by now
			w.HoldReply(w.of(q, zktest.OpNotification))
			w.Write(node, queue.RevokeMessage)
			w.Disconnect()
		},
	} {
		run(t, func(w world) {
			q := w.queue()
			l := w.acquire(q)
			revoke(w, q, l.Path())
			w.Await(l.Revoked())
			w.Pass(time.Second)
			w.Write(l.Path(), queue.RevokeMessage)
			w.Want(what, l.Err(), nil)
			w.release(l)
			next := w.acquire(w.queue())
			w.token(next)
			if next.IsRevoked() {
				t.Errorf("%s: the next holder is told", what)
			}
		})
	}
}

// A request comes while the contender waits, and the connection breaks while the contender reads what has changed. The
// lease knows of the request from its beginning.
func TestRevokedBeforeACutGrant(t *testing.T) {
	run(t, func(w world) {
		first, q := w.acquire(w.queue()), w.queue()
		waits := w.begin(q, ask)
		node := w.Nodes(dir)[1]
		listing := w.HoldRequest(w.of(q, zktest.OpGetChildren2))
		w.Write(node, queue.RevokeMessage)
		w.Await(listing.Hit())
		w.release(first)
		read := w.CutBefore(zktest.On(zktest.OpGetData, node))
		listing.Release()
		w.Await(read.Hit())
		if !waits.Get().IsRevoked() {
			t.Error("the lease does not know of the request")
		}
	})
}

// beside takes the read lock beside a write lock.
func (w world) beside(l *queue.Lease) (*queue.Turn, error) {
	r := queue.Request{Kind: queue.Reader(), Prefix: queue.PrefixRead, Weight: 1} // as Acquiring completes it
	t, _, err := l.Turn().Beside(w.Context(), l, r)
	return t, err
}

// The reader has the token of the writer, whether or not anybody has asked for that before. Its own node is younger than those
// that wait behind it, whose tokens must be higher.
func TestBesideToken(t *testing.T) {
	for _, early := range []bool{false, true} {
		run(t, func(w world) {
			q := w.queue()
			first := w.take(q, write)
			if early {
				w.token(first)
			}
			next := w.begin(w.queue(), write)
			turn, err := w.beside(first)
			w.Must(err)
			reader, of := turn.Lease(w.Context(), nil), w.token(first)
			w.release(first)
			reader.Turn().WatchNow()
			w.Pass(time.Second)
			if got := w.token(reader); got != of {
				t.Errorf("token %d, want %d", got, of)
			}
			w.release(reader)
			if after := w.token(next.Get()); after <= of {
				t.Errorf("token %d, want more than %d", after, of)
			}
		})
	}
}

// The writer's node is deleted by hand, at any moment before the listing that would grant the reader's turn. There is no place
// to share then: others may be in already. Beside fails with the loss, and leaves no node.
func TestBesideNodeDeletedByHand(t *testing.T) {
	for what, at := range map[string]zktest.Op{"before": 0, "at the create": zktest.OpCreate, "at the listing": zktest.OpGetChildren2} {
		run(t, func(w world) {
			q := w.queue()
			first := w.take(q, write)
			fault := w.HoldRequest(w.of(q, at))
			if at == 0 {
				fault.Release()
				w.Remove(first.Path())
			}
			var turn *queue.Turn
			c := w.Go(func() (err error) { turn, err = w.beside(first); return err })
			if at != 0 {
				w.Await(fault.Hit())
				w.Remove(first.Path())
				fault.Release()
			}
			w.Want(what, c.Err(), session.ErrLost)
			if turn != nil {
				t.Errorf("%s: a turn", what)
			}
			w.Want(what, first.Err(), session.ErrLost)
			w.nodes(what, 0)
		})
	}
}

// A node that no client of ours makes is ahead of a writer that holds, so that its reader has to wait. Meanwhile the writer's node
// is deleted by hand. What ends the wait is an event, and an event does not show both nodes: the reader is not let in.
func TestBesideIsGrantedByAListing(t *testing.T) {
	run(t, func(w world) {
		w.Remove(w.Forge(dir, queue.PrefixWrite)) // the next number is 1
		first := w.take(w.queue(), write)
		strange := w.Forge(dir, queue.PrefixWrite+"0000000000")
		reader := w.Go(func() error { _, err := w.beside(first); return err })
		reader.Waits("a writer is ahead")
		w.Remove(first.Path())
		w.Remove(strange)
		w.Want("Beside", reader.Err(), session.ErrLost)
		w.nodes("in the end", 0)
	})
}
