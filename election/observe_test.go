package election_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const nobody = "nobody"

// observed is a loop over Observe. Read its fields after a pass.
type observed struct {
	*election.Election
	seen  []string // the ids of the leaders, or nobody, since the last look
	ended chan error
}

// observe begins a loop in a process of its own.
func (t *world) observe(ctx context.Context) *observed {
	t.Helper()
	o := &observed{Election: t.election(), ended: make(chan error, 1)}
	go func() {
		for leader, err := range o.Observe(ctx) {
			switch {
			case errors.Is(err, election.ErrNoLeader):
				o.seen = append(o.seen, nobody)
			case err != nil:
				o.ended <- err
			default:
				o.seen = append(o.seen, leader.ID)
			}
		}
		close(o.ended)
	}()
	pass(time.Second)
	return o
}

// sees compares what an observer was told since the last call.
func (o *observed) sees(tb testing.TB, want ...string) {
	tb.Helper()
	pass(soon)
	if diff := cmp.Diff(want, o.seen); diff != "" {
		tb.Fatalf("the observer was told (-want +got):\n%s", diff)
	}
	o.seen = nil
}

// Observe gives the leader, each that follows, and says when there is none, from before the first candidate on. It ends with
// its context and with its manager.
func TestObserve(t *testing.T) {
	inBubble(t, func(t *world) {
		ctx, cancel := context.WithCancel(t.Context())
		o, closed := t.observe(ctx), t.observe(t.Context())
		o.sees(t, nobody)
		for range 3 {
			a := t.campaign("a")
			pass(timeout) // an observer looks for the directory once in a session timeout
			o.sees(t, "a")
			b := t.campaign("b")
			a.end <- nil
			o.sees(t, "b")
			b.end <- nil
			o.sees(t, "a")
			a.stop()
			o.sees(t, "b")
			b.stop()
			o.sees(t, nobody)
			testserver.Switch(t.server).ReapContainers() // which the directory is
			pass(time.Second)
		}
		cancel()
		must(t, closed.Manager().Close())
		for o, want := range map[*observed]error{o: context.Canceled, closed: session.ErrClosed} {
			if err := <-o.ended; !errors.Is(err, want) {
				t.Errorf("the loop ends with %v, want %v", err, want)
			}
			if err, more := <-o.ended; more {
				t.Errorf("%v after the error", err)
			}
		}
	})
}

// An observer that was disconnected, or has lost its session, learns of what has changed meanwhile, and of nothing if nothing
// has changed.
func TestObserveAcrossFaults(t *testing.T) {
	for name, lost := range map[string]bool{"disconnected": false, "session lost": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *world) {
				leader, _ := t.server.Leader()
				aside := (leader + 1) % 3 // the server of the observer
				t.dialer = t.server.DialerTo(aside)
				o := t.observe(t.Context())
				o.sees(t, nobody)
				t.dialer = t.server.DialerTo(leader)
				others := t.session()
				strike := func(change func()) {
					t.server.StopServer(aside)
					if lost {
						t.expire(o.Manager())
					}
					change()
					t.server.ResetRequests()
					must(t, t.server.StartServer(aside))
					pass(timeout)
					if t.server.Count(func(r zktest.Request) bool { return ofElection(r) && r.Session != others.ID() }) == 0 {
						t.Error("the observer does not look again")
					}
				}
				nothing := func() {}
				strike(nothing)
				o.sees(t)
				var a *session.Node
				strike(func() { a = t.enter(others, "elect-lock-", "a") })
				o.sees(t, "a")
				strike(nothing)
				o.sees(t)
				strike(func() {
					t.enter(others, "elect-lock-", "b")
					<-a.Remove(t.Context()).Done()
				})
				o.sees(t, "b")
			}, zktest.Servers(3))
		})
	}
}

// Observe sends nothing while nothing changes, or lists once in a session timeout if there is no directory.
func TestObserveIsQuiet(t *testing.T) {
	for _, leader := range []bool{false, true} {
		inBubble(t, func(t *world) {
			o, want, most := t.observe(t.Context()), []string{nobody}, 60
			if leader {
				t.campaign("a")
				pass(timeout)
				want, most = append(want, "a"), 0
			}
			o.sees(t, want...)
			t.server.ResetRequests()
			pass(10 * time.Minute)
			if n := t.server.Count(ofElection); n > most {
				t.Errorf("%d requests, want at most %d, and nothing has changed", n, most)
			}
			o.sees(t)
		})
	}
}

// ofElection matches requests about the election and its nodes. Heartbeats name other paths.
func ofElection(r zktest.Request) bool { return strings.HasPrefix(r.Path, dir) }

// However many candidates there are, an observer reads one node for each change, and lists them when it begins. It sees
// each leader, also when some have left that never led, and when all that it knows of have left.
func TestObserveCost(t *testing.T) {
	const candidates, observers = 100, 5
	inBubble(t, func(t *world) {
		s := t.session()
		var nodes []*session.Node
		come := func() { nodes = append(nodes, t.enter(s, "lock-", fmt.Sprint(len(nodes)))) }
		for range candidates {
			come()
		}
		t.server.ResetRequests()
		var all []*observed
		for range observers {
			all = append(all, t.observe(t.Context()))
		}
		// see wants all observers to know the leaders since the last time. They may send so many requests each.
		see := func(what string, reads, lists int, want ...string) {
			t.Helper()
			pass(timeout)
			for _, o := range all {
				o.sees(t, want...)
			}
			for op, most := range map[zktest.Op]int{zktest.OpGetData: reads, zktest.OpGetChildren2: lists} {
				n := t.server.Count(func(r zktest.Request) bool { return r.Op == op && ofElection(r) && r.Session != s.ID() })
				if n > most*observers {
					t.Errorf("%s: %d times %v of %d observers, want at most %d each", what, n, op, observers, most)
				}
			}
			t.server.ResetRequests()
		}
		leave := func(some ...int) {
			for _, i := range some {
				must(t, s.Delete(t.Context(), nodes[i].Path, -1))
			}
		}
		see("at first", 1, 1, "0")
		leave(0)
		see("the leader has left", 1, 0, "1")
		leave(3, 2, 1) // the leader last
		see("others had left before", 3, 1, "4")
		come()
		leave(4)
		see("one has come", 1, 0, "5")
		for i := candidates; i >= 5; i-- {
			leave(i)
		}
		see("all have left", 2, 3, nobody) // one of the lists sets a watch
		come()
		see("one has come again", 1, 2, fmt.Sprint(candidates+1))
	})
}

// Clients that give their nodes no id repeat names when the directory is made anew. The observer takes no node for one of
// the same name that has led before.
func TestObserveSameNames(t *testing.T) {
	inBubble(t, func(t *world) {
		s := t.session()
		come := func(id string, n int) {
			_, err := s.Create(t.Context(), dir, nil, session.Persistent)
			must(t, err)
			for range n {
				_, err := s.Create(t.Context(), dir+"/lock-", []byte(id), session.PersistentSequential)
				must(t, err)
			}
		}
		leave := func(n ...int) {
			for _, i := range n {
				must(t, s.Delete(t.Context(), fmt.Sprintf("%s/lock-%010d", dir, i), -1))
			}
		}
		come("old", 4)
		o := t.observe(t.Context())
		o.sees(t, "old")
		read := t.server.HoldRequest(zktest.On(zktest.OpGetData, dir+"/lock-0000000001"))
		leave(0)
		<-read.Hit()
		leave(1, 2, 3)
		must(t, s.Delete(t.Context(), dir, -1))
		come("new", 2)
		read.Release()
		o.sees(t, "new")
	})
}

// Servers do not tell an observer of a directory that is made so that it may not read it. The observer fails in place of
// saying for ever that nobody leads.
func TestObserveUnreadable(t *testing.T) {
	for _, there := range []bool{false, true} {
		inBubble(t, func(t *world) {
			if there {
				_, err := t.session().Create(t.Context(), dir, nil, session.Persistent)
				must(t, err)
			}
			o := t.observe(t.Context())
			private := t.electionOf(t.connect(session.WithAuth("digest", []byte("a:b")), session.WithACL(zk.AuthACL(zk.PermAll)...)))
			go func() { _ = private.Run(t.Context(), rests) }()
			pass(time.Minute)
			select {
			case err := <-o.ended:
				wantErr(t, "the end", err, zk.ErrNoAuth)
			default:
				t.Errorf("directory %v: nothing in a minute", there)
			}
		})
	}
}

// Candidates that Leader finds are gone before it reads of them. It looks again after a second at most, and if its context
// ends meanwhile it returns the error of the context.
func TestLeaderWhileCandidatesChange(t *testing.T) {
	for _, ends := range []bool{false, true} {
		inBubble(t, func(t *world) {
			s := t.session()
			for range 6 {
				t.enter(s, "elect-lock-", "a")
			}
			left := 4
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m := t.connect(session.WithBackoff(time.Minute, time.Minute), session.WithTrace(session.Trace{
				Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
					if r.Op == "getData" && ofElection(zktest.Request{Path: r.Path}) && left > 0 {
						left--
						must(t, t.server.DeleteNode(r.Path))
					}
					return ctx, func(err error) {
						if ends && errors.Is(err, zk.ErrNoNode) {
							cancel()
						}
					}
				},
			}))
			start := time.Now()
			_, err := t.electionOf(m).Leader(ctx)
			if !errors.Is(err, ctx.Err()) || time.Since(start) > 4*time.Second {
				t.Errorf("Leader returns %v after %v", err, time.Since(start))
			}
		})
	}
}
