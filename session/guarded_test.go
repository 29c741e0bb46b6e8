package session_test

import (
	"context"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// askedBackOff calls ask before each wait.
type askedBackOff struct{ ask func() }

func (b askedBackOff) Reset() { b.ask() }
func (b askedBackOff) NextBackOff() time.Duration {
	b.ask()
	return 10 * time.Millisecond
}

func withBackOff(ask func()) session.Option {
	return session.WithRetry(func() backoff.BackOff { return askedBackOff{ask} })
}

// outageAndLoss has the server refuse connections for a while, and then expires the session. It fails the test
// unless the manager has a session again after both.
func outageAndLoss(t *testing.T, srv *zktest.Server, m *session.Manager, s *session.Session) {
	t.Helper()
	srv.Refuse(true)
	srv.Disconnect()
	time.Sleep(time.Second)
	srv.Refuse(false)
	time.Sleep(5 * time.Second)
	if m.State() != session.Connected || s.Err() != nil {
		t.Errorf("5 s after an outage of 1 s: %v, %v", m.State(), s.Err())
	}
	must(t, srv.Expire(t.Context(), s.ID()))
	<-s.Done()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := m.Session(ctx)
	must(t, err)
}

// A BackOff that ends its goroutine ends neither the dialling nor the opening of sessions. It does so in
// all of its functions, from some call on.
func TestBackOffThatEndsItsGoroutine(t *testing.T) {
	for name, every := range map[string]int64{"always": 1, "now and then": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int64
				srv := zktest.Start(t)
				m, s := virtually(t, "h:1", srv.Dialer(), withBackOff(func() {
					if calls.Add(1)%every == 0 {
						runtime.Goexit()
					}
				}))
				outageAndLoss(t, srv, m, s)
				if calls.Load() == 0 {
					t.Error("the BackOff was not called")
				}
			})
		})
	}
}

// A BackOff may call the manager, also in a way that asks for the reason why there is no connection.
func TestBackOffThatCallsTheManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var manager atomic.Pointer[session.Manager]
		var calls atomic.Int64
		srv := zktest.Start(t)
		m, s := virtually(t, "h:1", srv.Dialer(), withBackOff(func() {
			if m := manager.Load(); m != nil {
				calls.Add(1)
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
				defer cancel()
				_, _ = m.Session(ctx)
				_ = m.State()
				m.Subscribe(func(session.Change) {})()
			}
		}))
		manager.Store(m)
		outageAndLoss(t, srv, m, s)
		if calls.Load() == 0 {
			t.Error("the BackOff was not called")
		}
	})
}

// A BackOff that panics ends neither the dialling nor the opening of sessions, nor a request. The default wait takes
// its place.
func TestBackOffThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		srv := zktest.Start(t)
		m, s := virtually(t, "h:1", srv.Dialer(), withBackOff(func() {
			calls.Add(1)
			panic("of the user")
		}))
		var throttled atomic.Bool
		srv.Throttle(func(r zktest.Request) bool { return r.Op == zktest.OpExists && throttled.CompareAndSwap(false, true) })
		if _, err := s.Exists(t.Context(), "/"); err != nil || calls.Load() == 0 {
			t.Errorf("exists: %v, after %d calls", err, calls.Load())
		}
		outageAndLoss(t, srv, m, s)
	})
}

// A dialer that ends its goroutine is a dial that failed.
func TestDialerThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		srv := zktest.Start(t)
		d := srv.Dialer()
		m, s := virtually(t, "h:1", func(ctx context.Context, network, addr string) (net.Conn, error) {
			if dials.Add(1)%4 != 0 {
				runtime.Goexit()
			}
			return d(ctx, network, addr)
		})
		outageAndLoss(t, srv, m, s)
	})
}

// A subscriber whose function ends its goroutine gets all changes all the same, and so does a State hook.
func TestSubscriberThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, hooked, steady history
		srv := zktest.Start(t)
		m, s := virtually(t, "h:1", srv.Dialer(), session.WithTrace(session.Trace{State: func(c session.Change) {
			hooked.add(c)
			runtime.Goexit()
		}}))
		m.Subscribe(func(c session.Change) {
			asked.add(c)
			runtime.Goexit()
		})
		m.Subscribe(steady.add)
		outageAndLoss(t, srv, m, s)
		must(t, m.Close())
		synctest.Wait()
		want := steady.states()
		if got := asked.states(); len(got) != len(want) || len(want) < 5 {
			t.Errorf("the subscriber got %v, want %v", got, want)
		}
		if got := hooked.states(); len(got) < len(want) {
			t.Errorf("the hook got %v, want %v and those before", got, want)
		}
	})
}

// A server whose multi returns results of other kinds than the operations breaks the protocol: nothing of
// the answer is believed, and the connection is closed.
func TestMultiResultsOfOtherKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := virtually(t, "h:1", func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go checksForAll(far)
			return near, nil
		}, session.WithTickTime(time.Second))
		for name, op := range map[string]any{
			"set":    &zk.SetDataRequest{Path: "/a", Version: -1},
			"delete": &zk.DeleteRequest{Path: "/a", Version: -1},
			"create": &zk.CreateRequest{Path: "/a"},
		} {
			results, err := s.Multi(t.Context(), op)
			if results != nil {
				t.Errorf("%s: results %v", name, results)
			}
			wantErr(t, name, err, zk.ErrConnectionClosed)
			synctest.Wait() // the connection has been closed
		}
		results, err := s.Multi(t.Context(), &zk.CheckVersionRequest{Path: "/a", Version: -1})
		must(t, err)
		if len(results) != 1 {
			t.Errorf("check: %v", results)
		}
	})
}

// checksForAll is a server that answers each multi with one result of kind check.
func checksForAll(c net.Conn) {
	defer c.Close()
	for i := int64(0); ; i++ {
		f, err := codec.ReadFrame(c, codec.MaxFrame)
		if err != nil {
			return
		}
		answer := greet(0x77)
		if i > 0 {
			d := codec.Decode(f)
			xid, op := d.Int32(), d.Int32()
			e := codec.NewFrame()
			e.Int32(xid)
			e.Int64(i)
			e.Int32(codec.CodeOK)
			switch op {
			case codec.OpMulti:
				e.MultiHeader(codec.OpCheck, false, 0)
				e.MultiHeader(codec.OpError, true, -1)
			case codec.OpSync:
				e.String("/")
			}
			answer = e.Frame()
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}
