package election_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const nobody = "nobody"

// observed is a loop over Observe.
type observed struct {
	ids   chan string // of the leaders, or nobody
	ended chan error  // receives the last error
}

// observer connects with a session timeout that is longer than the tests wait. So an observer that looks again
// after a timeout only, because it has missed an event, fails the test.
func observer(tb testing.TB, servers, dir string) *election.Election {
	tb.Helper()
	return newElection(tb, testserver.Connect(tb, servers, session.WithTimeout(time.Minute)), dir)
}

func observe(ctx context.Context, e *election.Election) *observed {
	o := &observed{ids: make(chan string), ended: make(chan error, 1)}
	see := func(id string) {
		select {
		case o.ids <- id:
		case <-ctx.Done(): // the test has seen enough
		}
	}
	go func() {
		for leader, err := range e.Observe(ctx) {
			switch {
			case errors.Is(err, election.ErrNoLeader):
				see(nobody)
			case err != nil:
				o.ended <- err
			default:
				see(leader.ID)
			}
		}
		close(o.ended)
	}()
	return o
}

func (o *observed) sees(tb testing.TB, id string) {
	tb.Helper()
	if got := receive(tb, "a new leader", o.ids); got != id {
		tb.Fatalf("observed %s, want %s", got, id)
	}
}

// Observe gives the leader, each that follows, and says when there is none, from before the first
// candidate on.
func TestObserve(t *testing.T) {
	t.Parallel()
	dir := testserver.Path(t)
	ctx, cancel := context.WithCancel(patient(t))
	o := observe(ctx, observer(t, testserver.Server(t).Addr(0), dir))
	o.sees(t, nobody)
	for range 2 { // the second time the directory is there, or has been removed
		a := campaign(t, connect(t), dir, "a")
		o.sees(t, "a")
		term := a.leads(t)
		b := campaign(t, connect(t), dir, "b")
		testserver.WaitChildren(t, dir, 2)
		term.end <- nil
		o.sees(t, "b")
		b.leads(t).end <- nil
		o.sees(t, "a")
		a.stop()
		o.sees(t, "b")
		b.stop()
		o.sees(t, nobody)
	}
	zktest.Eventually(t, testserver.Patience, "the removal of the directory", func() bool {
		ok, _, err := testserver.Admin(t).Exists(dir)
		return err == nil && !ok
	})
	a := campaign(t, connect(t), dir, "a")
	o.sees(t, "a")
	a.leads(t)
	cancel()
	wantErr(t, "the end", receive(t, "the end of the loop", o.ended), context.Canceled)
	if _, more := <-o.ended; more {
		t.Error("more after the error")
	}
}

// An observer that was disconnected, or has lost its session, learns of what has changed meanwhile, and
// of nothing if nothing has changed.
func TestObserveAcrossFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(t *testing.T, p *zktest.Proxy, m *session.Manager){
		"disconnected": func(_ *testing.T, p *zktest.Proxy, _ *session.Manager) { p.Disconnect() },
		"session lost": func(t *testing.T, p *zktest.Proxy, m *session.Manager) {
			must(t, p.Expire(patient(t), testserver.Session(t, m).ID()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := testserver.Path(t)
			proxy := testserver.Proxy(t)
			e := observer(t, proxy.Addr(), dir)
			m := e.Manager()
			o := observe(t.Context(), e)
			o.sees(t, nobody)
			// Each fault comes twice: with a change while it lasts, and without one.
			strike := func(change func()) {
				t.Helper()
				proxy.Refuse(true)
				fault(t, proxy, m)
				change()
				proxy.Refuse(false)
			}
			lookedAgain := func() {
				t.Helper()
				proxy.ResetRequests()
				fault(t, proxy, m)
				zktest.Eventually(t, testserver.Patience, "another look", func() bool {
					return proxy.Count(func(r zktest.Request) bool {
						return r.Op == zktest.OpGetChildren2 && r.Path == dir || r.Op == zktest.OpGetData && strings.HasPrefix(r.Path, dir)
					}) > 0
				})
			}
			lookedAgain()
			var a *candidate
			strike(func() {
				a = campaign(t, connect(t), dir, "a")
				a.leads(t)
			})
			o.sees(t, "a")
			lookedAgain()
			strike(func() {
				campaign(t, connect(t), dir, "b")
				testserver.WaitChildren(t, dir, 2)
				a.stop()
				testserver.WaitChildren(t, dir, 1)
			})
			o.sees(t, "b")
		})
	}
}

// Observe ends when the manager is closed.
func TestObserveClosed(t *testing.T) {
	m := connect(t)
	o := observe(t.Context(), newElection(t, m, testserver.Path(t)))
	o.sees(t, nobody)
	must(t, m.Close())
	wantErr(t, "the end", receive(t, "the end of the loop", o.ended), session.ErrClosed)
}

// Observe sends nothing while nothing changes, or lists once in a session timeout if there is no directory.
func TestObserveIsQuiet(t *testing.T) {
	for _, leader := range []bool{false, true} {
		inBubble(t, func(t *testing.T, server *zktest.Server, connect func() *session.Manager) {
			ctx, cancel := context.WithCancel(t.Context())
			seen := 0
			loop := make(chan struct{})
			go func() {
				defer close(loop)
				for range newElection(t, connect(), "/election").Observe(ctx) {
					seen++
				}
			}()
			if leader {
				go func() {
					_ = newElection(t, connect(), "/election").Run(ctx, func(ctx context.Context) error {
						<-ctx.Done()
						return nil
					})
				}()
			}
			time.Sleep(15 * time.Second)
			synctest.Wait()
			told, sent, most := seen, server.Count(ofElection), 0
			if !leader {
				most = 60
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if n := server.Count(ofElection) - sent; n > most {
				t.Errorf("%d requests, want at most %d, and nothing has changed", n, most)
			}
			if seen != told {
				t.Errorf("%d pairs, and nothing has changed", seen-told)
			}
			cancel()
			<-loop
		})
	}
}

// ofElection matches requests about the election and its nodes. Heartbeats name other paths.
func ofElection(r zktest.Request) bool { return strings.HasPrefix(r.Path, "/election") }

// However many candidates there are, an observer reads one node for each change, and lists them when it begins. It sees
// each leader, also when some have left that never led, and when all that it knows of have left.
func TestObserveCost(t *testing.T) {
	const candidates, observers = 100, 5
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func() *session.Manager) {
		s := testserver.Session(t, connect())
		_, err := s.Create(t.Context(), "/election", nil, session.Persistent)
		must(t, err)
		var nodes []string
		come := func() { nodes = append(nodes, enter(t, s, "/election", "lock-", "").Path) }
		for range candidates {
			come()
		}
		ctx, cancel := context.WithCancel(t.Context())
		leader := make([]string, observers)
		var loops sync.WaitGroup
		for i := range observers {
			e := newElection(t, connect(), "/election")
			loops.Go(func() {
				for c, err := range e.Observe(ctx) {
					if err != nil && !errors.Is(err, election.ErrNoLeader) {
						return
					}
					leader[i] = c.Path
				}
			})
		}
		// see waits until all observers know the first node. They may send so many requests each.
		see := func(what string, first string, reads, lists int) {
			t.Helper()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			for i, got := range leader {
				if got != first {
					t.Fatalf("%s: observer %d sees %q, want %q", what, i, got, first)
				}
			}
			on := func(op zktest.Op) zktest.Match {
				return func(r zktest.Request) bool { return r.Op == op && ofElection(r) && r.Session != s.ID() }
			}
			if n := server.Count(on(zktest.OpGetData)); n > reads*observers {
				t.Errorf("%s: %d reads of %d observers, want at most %d each", what, n, observers, reads)
			}
			if n := server.Count(on(zktest.OpGetChildren2)); n > lists*observers {
				t.Errorf("%s: %d lists of %d observers, want at most %d each", what, n, observers, lists)
			}
			server.ResetRequests()
		}
		leave := func(some ...int) {
			for _, i := range some {
				must(t, s.Delete(t.Context(), nodes[i], -1))
			}
		}
		see("at first", nodes[0], 1, 1)
		leave(0)
		see("the leader has left", nodes[1], 1, 0)
		leave(3, 2, 1) // the leader last
		see("others had left before", nodes[4], 3, 1)
		come()
		leave(4)
		see("one has come", nodes[5], 1, 0)
		for i := candidates; i >= 5; i-- {
			leave(i)
		}
		see("all have left", "", 2, 3) // one of the lists sets a watch
		come()
		see("one has come again", nodes[candidates+1], 1, 2)
		cancel()
		loops.Wait()
	})
}

// Clients that give their nodes no id repeat names when the directory is made anew. The observer takes no node for one of
// the same name that has led before.
func TestObserveSameNames(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func() *session.Manager) {
		s, e := testserver.Session(t, connect()), newElection(t, connect(), "/election")
		come := func(id string, n int) {
			_, err := s.Create(t.Context(), "/election", nil, session.Persistent)
			must(t, err)
			for range n {
				_, err := s.Create(t.Context(), "/election/lock-", []byte(id), session.PersistentSequential)
				must(t, err)
			}
		}
		leave := func(n ...int) {
			for _, i := range n {
				must(t, s.Delete(t.Context(), fmt.Sprintf("/election/lock-%010d", i), -1))
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		come("old", 4)
		o := observe(ctx, e)
		o.sees(t, "old")
		read := server.HoldRequest(zktest.On(zktest.OpGetData, "/election/lock-0000000001"))
		leave(0)
		<-read.Hit()
		leave(1, 2, 3)
		must(t, s.Delete(t.Context(), "/election", -1))
		come("new", 2)
		read.Release()
		o.sees(t, "new")
	})
}

// A Leader whose context ends while the candidates change returns the error of the context.
func TestLeaderCanceledWhileCandidatesChange(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func() *session.Manager) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := testserver.Session(t, connect())
		m, err := session.Connect(ctx, "zookeeper:2181", session.WithDialer(server.Dialer()), session.WithTrace(session.Trace{
			Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
				return ctx, func(err error) {
					if errors.Is(err, zk.ErrNoNode) && r.Op == "getData" {
						cancel()
					}
				}
			},
		}))
		must(t, err)
		defer m.Close()
		_, err = s.Create(t.Context(), "/election", nil, session.Persistent)
		must(t, err)
		node := enter(t, s, "/election", "lock-", "")
		read := server.HoldRequest(zktest.On(zktest.OpGetData, node.Path))
		leader := make(chan error, 1)
		go func() {
			_, err := newElection(t, m, "/election").Leader(ctx)
			leader <- err
		}()
		<-read.Hit()
		<-node.Remove(t.Context()).Done()
		read.Release()
		wantErr(t, "Leader", <-leader, context.Canceled)
	})
}

// Servers do not tell an observer of a directory that is made so that it may not read it. The observer fails in place of
// saying for ever that nobody leads.
func TestObserveUnreadable(t *testing.T) {
	for _, there := range []bool{false, true} {
		inBubble(t, func(t *testing.T, server *zktest.Server, connect func() *session.Manager) {
			e, other := newElection(t, connect(), "/election"), testserver.Session(t, connect())
			private, err := session.Connect(t.Context(), "zookeeper:2181", session.WithDialer(server.Dialer()),
				session.WithAuth("digest", []byte("a:b")), session.WithACL(zk.AuthACL(zk.PermAll)...))
			must(t, err)
			t.Cleanup(func() { _ = private.Close() })
			if there {
				_, err := other.Create(t.Context(), "/election", nil, session.Persistent)
				must(t, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			o := observe(ctx, e)
			o.sees(t, nobody)
			synctest.Wait()
			c := newElection(t, private, "/election")
			var running sync.WaitGroup
			running.Go(func() {
				_ = c.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
			})
			soon, cancelSoon := context.WithTimeout(ctx, time.Minute)
			defer cancelSoon()
			select {
			case err := <-o.ended:
				wantErr(t, "the end", err, zk.ErrNoAuth)
			case <-soon.Done():
				t.Errorf("directory %v: nothing in a minute", there)
			}
			cancel()
			running.Wait()
		})
	}
}
