package session_test

import (
	"bytes"
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Close ends the session on the servers, and all calls. All that follow fail.
func TestClose(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		node := enter(t, e.s, "/d/own").Path
		var h, late history
		e.m.Subscribe(h.add)
		if isClosed(e.m.Done()) {
			t.Error("done before Close")
		}
		must(t, e.m.Close())
		must(t, e.m.Close())
		<-e.m.Done()
		if stat, err := e.other.Exists(t.Context(), node); err != nil || stat != nil {
			t.Errorf("the node: %+v, %v", stat, err)
		}
		wantErr(t, "session", e.s.Err(), session.ErrClosed)
		<-e.s.Done()
		if e.m.State() != session.Closed {
			t.Errorf("state %v", e.m.State())
		}
		wantErr(t, "Session", expect.Err(e.m.Session(t.Context())), session.ErrClosed)
		_, _, err := e.s.Get(t.Context(), "/")
		wantErr(t, "a request", err, session.ErrClosed)
		h.wait(t, session.Connected, session.Closed)
		e.m.Subscribe(late.add)
		late.wait(t, session.Closed)
	})
}

// Close ends the calls that wait for a connection. If no server can be reached, it gives up after its limit, and says so.
func TestCloseIsBounded(t *testing.T) {
	for what, breaks := range map[string]func(*zktest.Server){
		"no connection": func(srv *zktest.Server) { srv.Refuse(true); srv.Disconnect() },
		"silence":       func(srv *zktest.Server) { srv.Blackhole(zktest.Both) },
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, e *env) {
				enter(t, e.s, "/d/own")
				breaks(e.Server)
				synctest.Wait()
				results := make(chan error, 2)
				go func() { _, _, err := e.s.Get(context.Background(), "/"); results <- err }()
				r := e.s.Remove(t.Context(), "/none")
				go func() { results <- gone(r) }()
				synctest.Wait()
				wantClose(t, e.m)
				if e.m.Close() == nil {
					t.Error("closed without the server knowing, and no error")
				}
				for range 2 {
					wantErr(t, "who waited", <-results, session.ErrClosed)
				}
				e.Heal()
			})
		})
	}
}

// stuckConn is a connection that does not close before it may.
type stuckConn struct {
	net.Conn
	free chan struct{}
}

func (c *stuckConn) Close() error {
	<-c.free
	return c.Conn.Close()
}

// Close returns although a connection of the user's dialer does not close.
func TestCloseWithStuckConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free, d := make(chan struct{}), zktest.Start(t).Dialer()
		m, _ := virtually(t, "h:1", func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := d(ctx, network, addr)
			return &stuckConn{c, free}, err
		})
		wantClose(t, m)
		close(free)
	})
}

// closeWitness is a connection that tells when closeSession is sent.
type closeWitness struct {
	net.Conn
	closing func()
}

func (c *closeWitness) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte{0xff, 0xff, 0xff, 0xf5}) { // the operation
		c.closing()
	}
	return c.Conn.Write(b)
}

// The servers delete the nodes of a session that is closed, and send the events of the watches on them. So the watches of
// the session itself have ended by the time at which Close asks for that. Otherwise holders would take it for a deletion
// by others.
func TestWatchesEndBeforeClose(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			var w *session.Watch
			asked, d := make(chan session.WatchEvent, 10), zktest.Start(t).Dialer()
			m, s := virtually(t, "h:1", func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := d(ctx, network, addr)
				return &closeWitness{c, func() { asked <- w.Event() }}, err
			}, session.WithTickTime(2*time.Second))
			path := enter(t, s, "/d/own").Path
			var err error
			_, _, w, err = s.Watch(t.Context(), path)
			must(t, err)
			must(t, m.Close())
			if event := <-asked; event != session.WatchBroken {
				t.Errorf("event %v when the close is sent", event)
			}
		})
	}
}
