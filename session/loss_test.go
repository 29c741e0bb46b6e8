package session_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A lost session stays lost, whatever the reason, and requests in flight end with that: no other try is worth it. The manager
// tells of each step, and has another session.
func TestLoss(t *testing.T) {
	for what, c := range map[string]struct {
		opts   []session.Option
		loses  func(*testing.T, *zktest.Server, *session.Session)
		states []session.State
	}{
		"expired by the server": {nil, func(t *testing.T, srv *zktest.Server, s *session.Session) {
			must(t, srv.Expire(t.Context(), s.ID()))
		}, []session.State{session.Connected, session.Suspended, session.Lost, session.Connecting, session.Connected}},
		"a lost connection is a loss": {[]session.Option{session.WithLossOnSuspend()}, func(_ *testing.T, srv *zktest.Server, _ *session.Session) {
			srv.Disconnect()
		}, []session.State{session.Connected, session.Lost, session.Connecting, session.Connected}},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, e *env) {
				node := enter(t, e.s, "/d/own").Path
				var h history
				e.m.Subscribe(func(c session.Change) {
					h.add(c)
					runtime.Goexit() // which costs it no later change
				})
				defer e.HoldReply(zktest.Any(zktest.OpCreate)).Release()
				inFlight := make(chan error, 20)
				for i := range cap(inFlight) {
					go func() { _, err := makeNode(t.Context(), e.s, fmt.Sprint("/n", i), nil); inFlight <- err }()
				}
				synctest.Wait()
				c.loses(t, e.Server, e.s)
				<-e.s.Done()
				wantErr(t, "session", e.s.Err(), session.ErrLost)
				for range cap(inFlight) {
					wantErr(t, "a request in flight", <-inFlight, session.ErrLost)
				}
				_, _, err := e.s.Get(t.Context(), "/")
				wantErr(t, "a request", err, session.ErrLost)
				next, err := e.m.Session(t.Context())
				must(t, err)
				must(t, next.Sync(t.Context(), "/"))
				if e.s.Remaining() != 0 || next.ID() == e.s.ID() {
					t.Errorf("%v remain of a lost session, and the next is the same: %v", e.s.Remaining(), next.ID() == e.s.ID())
				}
				time.Sleep(time.Second)
				if stat, err := e.other.Exists(t.Context(), node); err != nil || stat != nil {
					t.Errorf("the node of the lost session: %+v, %v", stat, err)
				}
				if !slices.Equal(h.states(), c.states) {
					t.Errorf("states %v, want %v", h.states(), c.states)
				}
			}, c.opts...)
		})
	}
}

// The quorum is away for longer than the session timeout. However long that lasts, the lost session is closed on the
// servers soon after they are back, so others need not wait until a new leader has counted its whole timeout.
//
// Broken rule: section 7, The end of a session: closing is tried until it is done, or the servers say that the session is gone.
func TestLongOutageClosesLostSession(t *testing.T) {
	const timeout = 6 * time.Second
	for _, outage := range []time.Duration{8 * time.Second, 12 * time.Second, 22 * time.Second, 2 * time.Minute} {
		t.Run(outage.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.Servers(3))
				m, s := virtually(t, srv.Hosts(), srv.Dialer(), session.WithTimeout(timeout))
				watcher, _ := virtually(t, srv.Hosts(), srv.Dialer(), session.WithTimeout(timeout))
				node := enter(t, s, "/d/own")
				began := time.Now()
				srv.StopServer(0)
				srv.StopServer(1)
				<-s.Done()
				time.Sleep(outage - time.Since(began))
				must(t, srv.StartServer(0))
				must(t, srv.StartServer(1))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				must(t, expect.Err(m.Session(ctx)))
				anew := time.Now()
				for {
					seen, err := watcher.Session(ctx)
					must(t, err)
					stat, err := seen.Exists(ctx, node.Path)
					if err == nil && stat == nil {
						break
					}
					time.Sleep(20 * time.Millisecond)
				}
				if d := time.Since(anew); d > timeout/3 {
					t.Errorf("the node of the lost session was there %v after its manager had a new session", d)
				}
			})
		})
	}
}

// A session whose nodes are gone sends no write heartbeats, also if the reply to a create was lost.
func TestHeartbeatWritesStop(t *testing.T) {
	for name, cut := range map[string]func(*zktest.Server, zktest.Match) *zktest.Fault{
		"not made": (*zktest.Server).CutBefore,
		"made":     (*zktest.Server).CutAfterCommit,
	} {
		inBubble(t, func(t *testing.T, e *env) {
			cut(e.Server, zktest.On(zktest.OpCreate, "/node"))
			must(t, e.s.Delete(t.Context(), enter(t, e.s, "/node").Path, -1))
			time.Sleep(3 * e.s.Timeout())
			e.ResetRequests()
			time.Sleep(10 * e.s.Timeout())
			must(t, e.s.Err())
			expect.Requests(t, name+": writes in 10 timeouts of a session that owns nothing", e.Server, zktest.Any(zktest.OpMulti), 0)
		})
	}
}
