package queue_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// unreadable nodes may be deleted, and not read.
var unreadable = session.WithACL(zk.WorldACL(zk.PermAll &^ zk.PermRead)...)

// held has another process hold the lock. Its node is watched already.
func (w world) held() *queue.Lease {
	w.T.Helper()
	l := w.take(w.queue(), queue.Request{Kind: mutex, Data: []byte("web-3")})
	w.token(l)
	return l
}

// A contender that waits watches its own node and that of the holder, and asks for nothing else, however long it waits. Once
// per session timeout it asks whether the nodes that it watches are still there, although there was no event.
func TestRequestsOfAWait(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Second, 2*bubble.Timeout + bubble.Timeout/2} {
		run(t, func(w world) {
			held := w.held()
			w.ResetRequests()
			c := w.begin(w.queue(), ask)
			w.Pass(wait)
			nodes := w.Nodes(dir)
			w.release(held)
			l := c.Get()
			w.token(l)
			w.release(l)
			w.sent(wait.String(), map[zktest.Op]int{
				zktest.OpCreate: 1, zktest.OpGetChildren2: 1, zktest.OpGetData: 2, zktest.OpDelete: 2,
			})
			for _, node := range nodes {
				expect.Requests(t, "looks at "+node, w.Server, zktest.On(zktest.OpExists, node), int(wait/bubble.Timeout))
				expect.Requests(t, "watches on "+node, w.Server, zktest.On(zktest.OpGetData, node), 1)
			}
		})
	}
}

// An uncontended lock that is held for a short time costs three requests. If it is held longer, or its
// token is asked for, it costs one more, which watches its node.
func TestWatchAfter(t *testing.T) {
	const watchAfter = 5 * time.Millisecond // as documented
	for what, c := range map[string]struct {
		hold  time.Duration
		token bool
		gets  int
	}{
		"released at once":  {0, false, 0},
		"released early":    {watchAfter - 1, false, 0},
		"held on":           {watchAfter + 1, false, 1},
		"asked for":         {0, true, 1},
		"asked for in time": {watchAfter + 1, true, 1},
	} {
		run(t, func(w world) {
			q := w.queue()
			w.ResetRequests()
			l := w.acquire(q)
			if c.token {
				w.token(l)
				w.token(l)
			}
			time.Sleep(c.hold)
			w.release(l)
			w.Pass(2 * watchAfter)
			w.sent(what, map[zktest.Op]int{
				zktest.OpCreate: 1, zktest.OpGetChildren2: 1, zktest.OpDelete: 1, zktest.OpGetData: c.gets,
			})
		})
	}
}

// If a node is deleted before it is watched, the holder finds out when the watch is set. A holder that has waited watches its
// node from the beginning. It is told at once that the node is deleted, whether it has asked for its token before or not, and
// also if somebody has written to the node meanwhile.
func TestDeletedBeforeWatched(t *testing.T) {
	for what, c := range map[string]struct {
		waits  bool
		before func(w world, l *queue.Lease)
		within time.Duration
	}{
		"not watched yet": {false, nil, 5 * time.Millisecond},
		"waited":          {true, nil, 0},
		"after many tokens and a write": {true, func(w world, l *queue.Lease) {
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() { w.token(l) })
			}
			all.Wait()
			w.ResetRequests()
			w.Write(l.Path(), "written")
			expect.Requests(t, "to watch the node again", w.Server, zktest.On(zktest.OpGetData, l.Path()), 1)
		}, 0},
		"after a write": {true, func(w world, l *queue.Lease) {
			w.Write(l.Path(), "written")
			w.token(l)
			w.Write(l.Path(), "again")
		}, 0},
	} {
		run(t, func(w world) {
			q := w.queue()
			var l *queue.Lease
			if c.waits {
				held := w.held()
				waits := w.begin(q, ask)
				w.release(held)
				l = waits.Get()
			} else {
				l = w.acquire(q)
			}
			if c.before != nil {
				c.before(w, l)
			}
			w.Must(w.DeleteNode(l.Path()))
			if took := bubble.Took(func() { w.Await(l.Done()) }); took > c.within {
				t.Errorf("%s: told %v after the deletion", what, took)
			}
			w.Want(what, l.Err(), session.ErrLost)
		})
	}
}

// The error of a wait names the holder, and before the server has said who that is, its node.
func TestErrorOfShortWait(t *testing.T) {
	for want, answered := range map[string]bool{"(held by lock-0000000000)": false, "(held by web-3, in the queue for ": true} {
		run(t, func(w world) {
			held := w.held()
			if !answered {
				w.HoldReply(zktest.On(zktest.OpGetData, held.Path()))
			}
			ctx, cancel := context.WithTimeout(w.Context(), time.Millisecond)
			defer cancel()
			_, err := w.queue().Acquire(ctx, ask)
			if w.Want("Acquire", err, context.DeadlineExceeded); !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
			w.Heal()
		})
	}
}

// A Watch hook is called when the wait has its watches. So it can look at the data and the owner of the holder's node, also
// when the wait is over.
func TestWatchHookSeesWhatIsKnown(t *testing.T) {
	run(t, func(w world) {
		m := w.Connect()
		var seen []session.WatchInfo
		m.AddTrace(session.Trace{Watch: func(_ context.Context, i session.WatchInfo) (context.Context, func(error)) {
			seen = append(seen, i)
			return nil, nil
		}})
		held := w.held()
		c := w.begin(w.on(m), ask)
		others := slices.DeleteFunc(w.Sessions(), func(id int64) bool { return id == w.Session(m).ID() })
		known := func(want string) {
			t.Helper()
			if w.Pass(0); len(seen) == 0 {
				t.Fatal("the hook is not called")
			}
			i := seen[len(seen)-1]
			n, ok := i.Known()
			if !ok || string(n.Data) != want || n.ID != want || !slices.Contains(others, n.Session) || i.Path != held.Path() {
				t.Errorf("of %s it knows %+v, %v; want %q of %s, one of %#x", i.Path, n, ok, want, held.Path(), others)
			}
		}
		known("web-3")
		w.Write(held.Path(), "written") // which begins another wait
		known("written")
		w.release(held)
		known("written")
		c.Get()
		if len(seen) != 2 {
			t.Errorf("the hook is called %d times, want 2", len(seen))
		}
	})
}

// An operator writes to the holder's node again and again. The waiter lists anew each time, and still gets the lock as soon as
// the holder releases it. The operator writes to the waiter's node, too, which ends the watch on it, and deletes the node before
// the next watch is set. The waiter does not hold then.
func TestTouchedNodes(t *testing.T) {
	run(t, func(w world) {
		held, q := w.held(), w.queue()
		c := w.begin(q, ask)
		for range 20 {
			w.Write(held.Path(), "touched")
			w.Pass(100 * time.Millisecond)
		}
		var l *queue.Lease
		if d := bubble.Took(func() { w.release(held); l = c.Get() }); d > 0 {
			t.Errorf("the waiter gets the lock after %v", d)
		}
		c = w.begin(w.queue(), ask)
		own := w.Nodes(dir)[1]
		watches := w.HoldRequest(zktest.On(zktest.OpGetData, dir))
		w.Must(expect.Err(w.Admin().Set(w.Context(), own, []byte("touched"), -1)))
		w.Await(watches.Hit())
		w.Remove(own)
		w.release(l)
		c.Waits("its node is gone")
		watches.Release()
		if c.Get().Path() == own {
			t.Errorf("it holds by %s, which is gone", own)
		}
	})
}

// A server does not tell a client that a node has gone which the client may not read. So a waiter finds out first whether it
// may read each node that it needs to hear of. One that may not read its own node would not hear of its end, and is refused.
// A holder that did not have to wait needs no watch, and keeps the lock, but has no token.
func TestUnreadable(t *testing.T) {
	run(t, func(w world) {
		pair := queue.Request{Kind: &queue.Kind{
			Name: "pair", Prefixes: []string{queue.PrefixLock},
			Policy: func(queue.Node) queue.Policy { return queue.Policy{Slack: 1} },
		}}
		readable, hidden := w.take(w.queue(), pair), w.take(w.queue(unreadable), pair)
		w.Want("behind a hidden node", expect.Err(w.queue().Acquire(w.Context(), pair)), zk.ErrNoAuth)
		w.release(hidden)
		q := w.queue(unreadable)
		w.Want("with a hidden node", expect.Err(q.Acquire(w.Context(), ask)), zk.ErrNoAuth)
		w.release(readable)

		l := w.acquire(q)
		w.Want("Token", expect.Err(l.Token(w.Context())), zk.ErrNoAuth)
		w.Must(l.Err())
		all, err := w.queue().Contenders(w.Context(), mutex)
		if w.Want("Contenders", err, zk.ErrNoAuth); all != nil {
			t.Errorf("%+v beside the error", all)
		}
		w.release(l)
		w.nodes("in the end", 0)
	})
}

// The wake-up is lost. The waiter finds out on its own that its turn has come, well before its regular check.
func TestWakeUpLost(t *testing.T) {
	for what, lose := range map[string]func(w world, of zktest.Match, leave func()){
		"the event is held back, then the connection breaks": func(w world, of zktest.Match, leave func()) {
			hold := w.HoldReply(of)
			leave()
			w.Await(hold.Hit())
			w.Disconnect()
		},
		"the connection breaks in place of the event": func(w world, of zktest.Match, leave func()) {
			cut := w.CutAfterCommit(of)
			leave()
			w.Await(cut.Hit())
		},
		"the predecessor leaves while there is no connection": func(w world, _ zktest.Match, leave func()) {
			w.Cut()
			leave()
			w.Refuse(false)
		},
		"the connection breaks, and is back, before": func(w world, _ zktest.Match, leave func()) {
			w.Disconnect()
			w.Pass(time.Second)
			leave()
		},
	} {
		run(t, func(w world) {
			holder := w.acquire(w.queue())
			q := w.queue(session.WithTimeout(time.Minute))
			before := w.Session(q.Manager())
			c := w.begin(q, ask)
			took := bubble.Took(func() {
				lose(w, w.of(q, zktest.OpNotification), func() { w.Remove(holder.Path()) })
				c.Get()
			})
			if took > 5*time.Second || w.Session(q.Manager()) != before {
				t.Errorf("%s: after %v, in the same session: %v", what, took, w.Session(q.Manager()) == before)
			}
			w.nodes(what, 1)
		})
	}
}

// deaf is a connection that drops the events of watches, as no server should.
type deaf struct {
	net.Conn
	rest []byte // of a frame that was let through
}

func (d *deaf) Read(p []byte) (int, error) {
	for len(d.rest) == 0 {
		var head [4]byte
		if _, err := io.ReadFull(d.Conn, head[:]); err != nil {
			return 0, err
		}
		frame := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(d.Conn, frame); err != nil {
			return 0, err
		}
		const event = ^uint32(0) // xid -1
		if binary.BigEndian.Uint32(frame) != event {
			d.rest = append(head[:], frame...)
		}
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// A waiter whose wake-up is lost looks again once in a session timeout.
func TestLostWakeUpCostsATimeout(t *testing.T) {
	run(t, func(w world) {
		l := w.acquire(w.queue())
		c := w.begin(w.queue(session.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := w.Dialer()(ctx, network, addr)
			return &deaf{Conn: c}, err
		})), ask)
		began := time.Now()
		w.release(l)
		c.Get()
		if took := time.Since(began); took < time.Second || took > bubble.Timeout+time.Second {
			t.Errorf("after %v, want a session timeout", took)
		}
	})
}

// A waiter that is cancelled leaves no watch on a node that stays, also if it was setting further watches at that moment. One
// of a kind with a configuration leaves none on its directory, also if it has listed that several times. Nor does an Observe
// that ends while it lists a directory.
func TestCancelledLeaveNoWatch(t *testing.T) {
	run(t, func(w world) {
		var ahead []string
		for range 3 {
			ahead = append(ahead, w.Forge(dir, queue.PrefixLock))
		}
		c := w.begin(w.queue(), ask) // it watches the last two
		held := w.HoldReply(zktest.On(zktest.OpGetData, ahead[0]))
		w.Remove(ahead[2])
		w.Await(held.Hit()) // it watches the first too
		c.Gives()
		held.Release()
		w.noWatch()
	})
	run(t, func(w world) {
		var ahead []string
		for range 4 {
			ahead = append(ahead, w.Forge(dir, queue.PrefixLease))
		}
		c := w.begin(w.queue(), queue.Request{Kind: limited("1")})
		for _, node := range ahead[1:] { // it lists again
			w.Remove(node)
		}
		c.Gives()
		w.noWatch()
	})
	run(t, func(w world) {
		q, first := w.queue(), atomic.Bool{}
		lists := w.of(q, zktest.OpGetChildren2)
		held := w.HoldReply(func(r zktest.Request) bool { return lists(r) && first.Swap(true) }) // behind the one that sets the watch
		ctx, cancel := context.WithCancel(w.Context())
		observer := w.Go(func() (last error) {
			for _, err := range q.Observe(ctx, mutex) {
				last = err
			}
			return last
		})
		w.Await(held.Hit())
		cancel()
		w.Want("Observe", observer.Err(), context.Canceled)
		held.Release()
		w.noWatch()
	})
}

// stuck is a connection to a peer that reads nothing while full is set.
type stuck struct {
	net.Conn
	full   *atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (c *stuck) Write(b []byte) (int, error) {
	if c.full.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *stuck) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// Calls that are given up while nothing can be sent send nothing later.
func TestAbandonedSendNothing(t *testing.T) {
	run(t, func(w world) {
		var full atomic.Bool
		q := w.queue(session.WithTimeout(2*bubble.Timeout), session.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := w.Dialer()(ctx, network, addr)
			full.Store(false)
			return &stuck{Conn: c, full: &full, closed: make(chan struct{})}, err
		}))
		holder := w.acquire(q)
		w.token(holder)
		w.ResetRequests()
		full.Store(true)
		const calls = 1000
		var all sync.WaitGroup
		for range calls {
			time.Sleep(5 * time.Millisecond)
			all.Go(func() {
				ctx, cancel := context.WithTimeout(w.Context(), time.Second)
				defer cancel()
				w.Want("Acquire", expect.Err(q.Acquire(ctx, ask)), context.DeadlineExceeded)
			})
		}
		all.Wait()
		for full.Load() { // until the connection is given up
			w.Pass(100 * time.Millisecond)
		}
		w.Pass(3 * time.Second)
		if n := w.Count(zktest.Any(zktest.OpCreate)); n > calls/50 {
			t.Errorf("%d nodes were created for calls that had been given up", n)
		}
		w.nodes("beside the holder", 1)
		w.Must(holder.Err())
	})
}
