package queue_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

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

// A contender that waits watches its own node and that of the holder, and asks for nothing else, however long it waits.
func TestRequestsOfAWait(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Second, long / 2} {
		alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
			l := waitBehind(t, server, m, ask, wait)
			wantTokenNow(t, l)
			release(t, l)
			for op, want := range map[zktest.Op]int{
				zktest.OpCreate: 1, zktest.OpGetChildren2: 1, zktest.OpGetData: 2, zktest.OpDelete: 2,
			} {
				if got := server.Count(zktest.Any(op)); got != want {
					t.Errorf("a wait of %v: %d requests %v, want %d", wait, got, op, want)
				}
			}
			if lastWatched(server) != l.Path() {
				t.Error("it does not watch its own node")
			}
		})
	}
}

// The error of a wait names the holder, and before the server has said who that is, its node.
func TestErrorOfShortWait(t *testing.T) {
	for want, answered := range map[string]bool{"(held by lock-0000000000)": false, "(held by web-3, in the queue for ": true} {
		alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
			held := holdElsewhere(t, server)
			if !answered {
				server.HoldReply(zktest.On(zktest.OpGetData, held.Path()))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			_, err := on(t, m, "/locks/one").Acquire(ctx, ask)
			mustBe(t, err, context.DeadlineExceeded)
			if !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
			server.Heal()
			release(t, held)
		})
	}
}

// A holder that has waited for a short time watches its node all the same. It is told at once that the node is
// deleted, whether it has asked for its token before or not, and also if somebody has written to the node meanwhile.
func TestDeletedAfterShortWait(t *testing.T) {
	for name, before := range map[string]func(*testing.T, *zktest.Server, *queue.Lease){
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

// lastWatched returns the node with the highest number of those that somebody has watched.
func lastWatched(server *zktest.Server) (node string) {
	number := func(p string) string { return p[max(0, len(p)-10):] }
	for _, r := range server.Requests() {
		if r.Op == zktest.OpGetData && number(r.Path) > number(node) {
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

// A Watch hook is called when the wait has its watches. So it can look at the data and the owner of the holder's node, also
// when the wait is over.
func TestWatchHookSeesWhatIsKnown(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		var seen []session.WatchInfo
		m.AddTrace(session.Trace{Watch: func(ctx context.Context, w session.WatchInfo) (context.Context, func(error)) {
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
			n, ok := w.Known()
			if ok != (want != "") || string(n.Data) != want || n.ID != want || ok && !slices.Contains(others, n.Session) || w.Path != held.Path() {
				t.Errorf("of %s it knows %q, %#x, %v; want %q of %s, one of %#x", w.Path, n.Data, n.Session, ok, want, held.Path(), others)
			}
		}
		known("web-3")
		write(t, server, held.Path()) // which begins another wait
		known("written")
		release(t, held)
		known("written")
		release(t, c.get(t))
		if len(seen) != 2 {
			t.Errorf("the hook is called %d times, want 2", len(seen))
		}
	})
}

// An operator writes to a waiter's node, which ends the watch on it, and deletes the node before the next watch is set.
// Then the holder releases. The waiter does not hold.
func TestTouchedThenDeleted(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		held, c := enterBehind(t, server, m, ask)
		own := lastWatched(server)
		watches := server.HoldRequest(zktest.Any(zktest.OpGetData))
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

// A waiter that may not read its own node would not hear of its end, and is refused.
func TestUnreadableOwn(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, _ *session.Manager) {
		m := testserver.Connect(t, "zookeeper:2181", session.WithDialer(server.Dialer()),
			session.WithLogger(slog.New(slog.DiscardHandler)), session.WithACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...))
		held, c := enterBehind(t, server, m, ask)
		c.wait(t)
		mustBe(t, c.err, zk.ErrNoAuth)
		release(t, held)
	})
}

// An operator writes to the holder's node again and again. The waiter lists anew each time, and still gets the lock as soon as
// the holder releases it. Time is virtual, and a frame takes none.
func TestTouchedNodeDelaysNobody(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		held, w := enterBehind(t, server, m, ask)
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			write(t, server, held.Path())
		}
		released := time.Now()
		release(t, held)
		l := w.get(t)
		if d := time.Since(released); d > 20*time.Millisecond {
			t.Errorf("the waiter gets the lock after %v", d)
		}
		release(t, l)
		synctest.Wait()
	})
}

// The wake-up is lost. The waiter finds out on its own that its turn has come, well before its
// regular check.
func TestWakeUpLost(t *testing.T) {
	for _, c := range []struct {
		what string
		lose func(t *testing.T, p *zktest.Proxy, leave func())
	}{
		{"the event is held back, then the connection breaks", func(t *testing.T, p *zktest.Proxy, leave func()) {
			hold := p.HoldReply(zktest.Any(zktest.OpNotification))
			leave()
			await(t, hold.Hit(), "the event")
			p.Disconnect()
		}},
		{"the connection breaks in place of the event", func(t *testing.T, p *zktest.Proxy, leave func()) {
			cut := p.CutAfterCommit(zktest.Any(zktest.OpNotification))
			leave()
			await(t, cut.Hit(), "the event")
		}},
		{"the predecessor leaves while there is no connection", func(_ *testing.T, p *zktest.Proxy, leave func()) {
			p.Refuse(true)
			p.Disconnect()
			leave()
			p.Heal()
		}},
		{"the connection breaks, and is back, before", func(t *testing.T, p *zktest.Proxy, leave func()) {
			p.ResetRequests()
			p.Disconnect()
			zktest.Eventually(t, testserver.Patience, "the handshake", func() bool {
				return p.Count(zktest.Any(zktest.OpConnect)) > 0
			})
			leave()
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := persistentDir(t)
			holder := acquire(t, client(t, dir))
			hook, watches := watching()
			q, proxy, m := proxied(t, dir, session.WithTimeout(time.Minute), hook)
			before := testserver.Session(t, m).ID()
			w := enter(t, q, 2)
			await(t, watches, "the waiter to watch")
			c.lose(t, proxy, func() {
				w.waits(t, "the first holds")
				release(t, holder)
			})
			select {
			case <-w.done:
			case <-time.After(testserver.Patience): // after a session timeout, it would look anyway
				t.Fatal("the wake-up was lost")
			}
			l := w.get(t)
			onlyChild(t, l)
			if testserver.Session(t, m).ID() != before {
				t.Error("not in the same session")
			}
			release(t, l)
		})
	}
}

// Once per session timeout a waiter asks whether the nodes that it watches are still there, although
// there was no event. It neither lists a long queue for that nor sets a watch twice.
func TestFramesLookAgain(t *testing.T) {
	const dir = "/locks/one"
	// In virtual time, since on a busy machine a connection can be lost, after which a listing would be right.
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		holder := acquire(t, on(t, m, dir))
		q := on(t, testserver.Connect(t, "zookeeper:2181", session.WithDialer(server.Dialer()), session.WithTimeout(long)), dir)
		w := begin(t, q, ask)
		time.Sleep(long / 4) // all watches are set
		all, err := q.Contenders(t.Context(), mutex)
		mustBe(t, err, nil)
		server.ResetRequests()
		time.Sleep(2 * long)
		w.waits(t, "the first holds")
		for _, node := range all {
			if n := server.Count(zktest.On(zktest.OpExists, node.Path)); n != 2 {
				t.Errorf("%d looks at %s in two timeouts", n, node.Path)
			}
		}
		for _, op := range []zktest.Op{zktest.OpGetChildren2, zktest.OpGetData, zktest.OpCreate} {
			if n := server.Count(ofContenders(dir, op)); n > 0 {
				t.Errorf("%d requests %v", n, op)
			}
		}
		release(t, holder)
		release(t, w.get(t))
	})
}
