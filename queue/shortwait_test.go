package queue_test

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// askAfter is the time after which a waiter asks who is ahead, as documented.
const askAfter = 20 * time.Millisecond

// waitBehind has a contender wait for some time behind the holder of another session. It returns its lease. server counts from
// the moment at which the contender enters.
func waitBehind(t *testing.T, server *zktest.Server, m *session.Manager, r queue.Request, wait time.Duration) *queue.Lease {
	t.Helper()
	held, c := enterBehind(t, server, m, r)
	time.Sleep(wait)
	release(t, held)
	return c.get(t)
}

func enterBehind(t *testing.T, server *zktest.Server, m *session.Manager, r queue.Request) (*queue.Lease, *call) {
	t.Helper()
	held := holdElsewhere(t, server)
	server.ResetRequests()
	c := begin(t, on(t, m, "/locks/one"), r)
	synctest.Wait()
	return held, c
}

// holdElsewhere returns the lease of another session. Its node is watched already.
func holdElsewhere(t *testing.T, server *zktest.Server) *queue.Lease {
	t.Helper()
	other := testserver.Connect(t, "zookeeper:2181", session.WithDialer(server.Dialer()),
		session.WithTimeout(long), session.WithLogger(slog.New(slog.DiscardHandler)))
	held, err := on(t, other, "/locks/one").Acquire(t.Context(), queue.Request{Kind: mutex, Data: []byte("web-3")})
	mustBe(t, err, nil)
	wantTokenNow(t, held)
	return held
}

// A contender that waits for a short time sets all of its watches by one request. A contender that waits longer asks for its
// own node and for that of the holder. A token that is not known is asked for.
func TestShortWait(t *testing.T) {
	for name, c := range map[string]struct {
		wait  time.Duration
		token bool
		gets  int
	}{
		"short":                {askAfter - 1, false, 0},
		"short, and the token": {askAfter - 1, true, 1},
		"longer":               {askAfter + 1, false, 2},
		"longer, and a token":  {askAfter + 1, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
				l := waitBehind(t, server, m, ask, c.wait)
				if c.token {
					wantTokenNow(t, l)
					wantTokenNow(t, l)
				}
				release(t, l)
				for op, want := range map[zktest.Op]int{
					zktest.OpCreate: 1, zktest.OpGetChildren2: 1, zktest.OpSetWatches: 1, zktest.OpGetData: c.gets, zktest.OpDelete: 2,
				} {
					if got := server.Count(zktest.Any(op)); got != want {
						t.Errorf("%d requests %v, want %d", got, op, want)
					}
				}
				if lastWatcher(server) != l.Path() {
					t.Error("it does not watch its own node")
				}
			})
		})
	}
}

// The error of a wait names the holder. That of a short wait names the holder's node alone.
func TestErrorOfShortWait(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		askAfter - 1: "(held by lock-0000000000)", askAfter + 1: "(held by web-3, in the queue for ",
	} {
		alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
			held := holdElsewhere(t, server)
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			_, err := on(t, m, "/locks/one").Acquire(ctx, ask)
			mustBe(t, err, context.DeadlineExceeded)
			if !strings.Contains(err.Error(), want) {
				t.Errorf("after %v: %v", wait, err)
			}
			release(t, held)
		})
	}
}

// A holder that has waited for a short time watches its node all the same. It is told at once that the node is
// deleted, whether it has asked for its token before or not, and also if somebody has written to the node meanwhile.
func TestDeletedAfterShortWait(t *testing.T) {
	for name, before := range map[string]func(*testing.T, *zktest.Server, *queue.Lease){
		"at once":                       func(*testing.T, *zktest.Server, *queue.Lease) {},
		"after its token was asked for": func(t *testing.T, _ *zktest.Server, l *queue.Lease) { wantTokens(t, l) },
		"after that and a write": func(t *testing.T, server *zktest.Server, l *queue.Lease) {
			wantTokens(t, l)
			server.ResetRequests()
			write(t, server, l.Path())
			if n := server.Count(zktest.On(zktest.OpGetData, l.Path())); n != 1 {
				t.Errorf("%d requests to watch the node again", n)
			}
		},
		"after a write": func(t *testing.T, server *zktest.Server, l *queue.Lease) {
			write(t, server, l.Path())
			wantTokenNow(t, l)
			write(t, server, l.Path())
		},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
				l := waitBehind(t, server, m, ask, 0)
				before(t, server, l)
				synctest.Wait()
				mustBe(t, server.DeleteNode(l.Path()), nil)
				start := time.Now()
				await(t, l.Done(), "the holder to be told")
				mustBe(t, l.Err(), session.ErrLost)
				if took := time.Since(start); took > 0 {
					t.Errorf("told %v after the deletion", took)
				}
			})
		})
	}
}

// wantTokens asks for the token in many goroutines.
func wantTokens(t *testing.T, l *queue.Lease) {
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { wantTokenNow(t, l) })
	}
	all.Wait()
}

// write writes to a node as an operator does.
func write(t *testing.T, server *zktest.Server, node string) {
	t.Helper()
	m := testserver.Connect(t, "zookeeper:2181", session.WithDialer(server.Dialer()), session.WithLogger(slog.New(slog.DiscardHandler)))
	_, err := testserver.Session(t, m).Set(t.Context(), node, []byte("written"), -1)
	mustBe(t, err, nil)
	synctest.Wait()
}

// A waiter whose node and predecessor are both gone before its watches are set does not hold: it enters again.
func TestBothDeletedBeforeWatched(t *testing.T) {
	dir := persistentDir(t)
	held := acquire(t, client(t, dir))
	q, proxy, _ := proxied(t, dir)
	watches := proxy.HoldRequest(zktest.On(zktest.OpSetWatches, dir))
	c := enter(t, q, 2)
	await(t, watches.Hit(), "the watches to be set")
	own := dir + "/" + newest(t, dir)
	testserver.Delete(t, own)
	release(t, held)
	watches.Release()
	l := c.get(t)
	if l.Path() == own {
		t.Errorf("it holds by %s, which is gone", own)
	}
	onlyChild(t, l)
	release(t, l)
}

// A waiter asks who is ahead, and the question is under way for long. Meanwhile the holder releases. The hand-over does not
// wait for the answer.
func TestHandOverWhileAsking(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		held, c := enterBehind(t, server, m, ask)
		question := server.HoldRequest(zktest.Any(zktest.OpGetData))
		time.Sleep(askAfter)
		await(t, question.Hit(), "the question")
		start := time.Now()
		release(t, held)
		l := c.get(t)
		if took := time.Since(start); took > 0 {
			t.Errorf("the hand-over took %v", took)
		}
		question.Release()
		wantTokenNow(t, l)
		release(t, l)
	})
}

// lastWatcher returns the node of the contender that was the last to set its watches.
func lastWatcher(server *zktest.Server) string {
	node := ""
	for _, r := range server.Requests() {
		if r.Op == zktest.OpSetWatches {
			node = r.Path
		}
	}
	return node
}

// mustEnterAgain checks that a waiter whose own node is gone does not hold while the request for its watches is held back, and
// that it gets the lock by another node after that.
func mustEnterAgain(t *testing.T, c *call, own string, watches *zktest.Fault) {
	t.Helper()
	synctest.Wait()
	select {
	case <-c.done:
		t.Errorf("it holds by %s, which is gone", own)
	default:
	}
	watches.Release()
	l := c.get(t)
	if l.Path() == own {
		t.Errorf("it holds by %s, which is gone", own)
	}
	release(t, l)
}

// A waiter shares the watch on the node ahead with the goroutine whose node that is. Its own node is deleted before its own
// watch is set, and the node ahead after that. The waiter does not hold, although it can see only that the node ahead has gone.
func TestDeletedBeforeOwnWatchIsSet(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		held, first := enterBehind(t, server, m, ask)
		release(t, held)
		ahead := first.get(t) // its watch on its own node is set
		watches := server.HoldRequest(zktest.Any(zktest.OpSetWatches))
		second := begin(t, on(t, m, "/locks/one"), ask)
		await(t, watches.Hit(), "the watches to be set")
		own := lastWatcher(server)
		mustBe(t, server.DeleteNode(own), nil)
		mustBe(t, server.DeleteNode(ahead.Path()), nil)
		await(t, ahead.Done(), "the node ahead to go")
		mustEnterAgain(t, second, own, watches)
	})
}

// A Watch hook is called when the wait begins. From then on it can look at what the wait knows of the holder: nothing at
// first, and the data and the owner of the holder's node once the wait has asked for them. That also holds when the wait is
// over.
func TestWatchHookSeesWhatIsKnown(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		var seen []session.WatchInfo
		(*core.Manager)(m).AddTrace(session.Trace{Watch: func(ctx context.Context, w session.WatchInfo) (context.Context, func(error)) {
			seen = append(seen, w)
			return ctx, nil
		}})
		held, c := enterBehind(t, server, m, ask)
		others := slices.DeleteFunc(server.Sessions(), func(id int64) bool { return id == testserver.Session(t, m).ID() })
		known := func(want string) {
			t.Helper()
			synctest.Wait()
			if len(seen) == 0 {
				t.Fatal("the hook is not called")
			}
			w := seen[len(seen)-1]
			data, session, ok := w.Known()
			if ok != (want != "") || string(data) != want || ok && !slices.Contains(others, session) || w.Path != held.Path() {
				t.Errorf("of %s it knows %q, %#x, %v; want %q of %s, one of %#x", w.Path, data, session, ok, want, held.Path(), others)
			}
		}
		time.Sleep(askAfter - 1)
		known("")
		time.Sleep(time.Nanosecond)
		known("web-3")
		write(t, server, held.Path()) // which begins another wait
		known("")
		time.Sleep(askAfter)
		known("written")
		release(t, held)
		known("written")
		release(t, c.get(t))
		if len(seen) != 2 {
			t.Errorf("the hook is called %d times, want 2", len(seen))
		}
	})
}

// A Watch hook is added while a contender waits. It is called when the contender looks again.
func TestWatchHookComesLater(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		held, c := enterBehind(t, server, m, ask)
		called := make(chan string, 1)
		(*core.Manager)(m).AddTrace(session.Trace{Watch: func(ctx context.Context, w session.WatchInfo) (context.Context, func(error)) {
			called <- w.Path
			return ctx, nil
		}})
		write(t, server, held.Path())
		if got := <-called; got != held.Path() {
			t.Errorf("the hook gets %s", got)
		}
		release(t, held)
		release(t, c.get(t))
	})
}

// An operator writes to a waiter's node, which ends the watch on it, and deletes the node before the next watch is set. Then the
// holder releases. The waiter does not hold.
func TestTouchedThenDeleted(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		held, c := enterBehind(t, server, m, ask)
		own := lastWatcher(server)
		watches := server.HoldRequest(func(r zktest.Request) bool { return r.Op == zktest.OpSetWatches || r.Op == zktest.OpGetData })
		write(t, server, own)
		await(t, watches.Hit(), "the watch to be set again")
		mustBe(t, server.DeleteNode(own), nil)
		release(t, held)
		mustEnterAgain(t, c, own, watches)
	})
}

// pair is a kind of lock that two may hold.
var pair = &queue.Kind{
	Name: "pair", Prefixes: []string{queue.PrefixLock},
	Policy: func(queue.Node) queue.Policy { return queue.Policy{Slack: 1} },
}

// A server does not tell a client that a node has gone which the client may not read. So a waiter finds out first whether it
// may read each node that it needs to hear of.
func TestUnreadableAhead(t *testing.T) {
	dir := persistentDir(t)
	r := queue.Request{Kind: pair}
	readable, err := client(t, dir).Acquire(patient(t), r)
	mustBe(t, err, nil)
	hidden, err := client(t, dir, session.WithACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...)).Acquire(patient(t), r)
	mustBe(t, err, nil)
	_, err = client(t, dir).Acquire(patient(t), r)
	mustBe(t, err, zk.ErrNoAuth)
	release(t, hidden)
	release(t, readable)
}

// A holder may not read its own node. It has waited for a short time. It learns that there is no token, and that its node was
// deleted, as soon as a holder that did not have to wait.
func TestUnreadableOwnAfterShortWait(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, _ *session.Manager) {
		m := testserver.Connect(t, "zookeeper:2181", session.WithDialer(server.Dialer()),
			session.WithLogger(slog.New(slog.DiscardHandler)), session.WithACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...))
		l := waitBehind(t, server, m, ask, 0)
		_, err := l.Token(t.Context())
		mustBe(t, err, zk.ErrNoAuth)
		release(t, l)
		l = waitBehind(t, server, m, ask, 0)
		mustBe(t, server.DeleteNode(l.Path()), nil)
		start := time.Now()
		await(t, l.Done(), "the holder to be told")
		if took := time.Since(start); took > watchAfter {
			t.Errorf("told %v after the deletion", took)
		}
	})
}

// A proxy before the servers knows no setWatches. A waiter sets its watches in another way then.
func TestWatchesRefused(t *testing.T) {
	dir := persistentDir(t)
	held := acquire(t, client(t, dir))
	p := testserver.Proxy(t)
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return &noSetWatches{Conn: c}, err
	}
	m := testserver.Connect(t, p.Addr(), session.WithTimeout(long), session.WithDialer(dial))
	c := enter(t, on(t, m, dir), 2)
	zktest.Eventually(t, testserver.Patience, "the watches to be set", func() bool {
		return p.Count(zktest.On(zktest.OpGetData, held.Path())) == 1
	})
	if n := p.Count(zktest.Any(zktest.OpGetChildren2)); n > 3 {
		t.Errorf("%d listings", n)
	}
	release(t, held)
	release(t, c.get(t))
}

// noSetWatches turns each setWatches into a request that the server refuses.
type noSetWatches struct {
	net.Conn
	rest []byte
}

func (c *noSetWatches) Write(b []byte) (int, error) { // zk.Conn and wire write one at a time
	c.rest = append(c.rest, b...)
	for len(c.rest) >= 4 {
		n := 4 + int(binary.BigEndian.Uint32(c.rest))
		if len(c.rest) < n {
			break
		}
		frame := c.rest[:n:n]
		c.rest = c.rest[n:]
		if n >= 12 && zktest.Op(binary.BigEndian.Uint32(frame[8:])) == zktest.OpSetWatches {
			const nowhere = "/nowhere"
			e := binary.BigEndian.AppendUint32(nil, uint32(8+4+len(nowhere)))
			e = append(e, frame[4:8]...)
			e = binary.BigEndian.AppendUint32(e, uint32(zktest.OpGetACL))
			e = binary.BigEndian.AppendUint32(e, uint32(len(nowhere)))
			frame = append(e, nowhere...)
		}
		if _, err := c.Conn.Write(frame); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}
