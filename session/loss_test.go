package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// ephemeral makes an ephemeral node, and returns its directory.
func ephemeral(t *testing.T, s *session.Session) string {
	t.Helper()
	d := dir(t, s)
	_, err := makeNode(patient(t), s, d+"/node", nil)
	must(t, err)
	return d
}

func TestExpiredByTheServer(t *testing.T) {
	p, m, s := behindProxy(t, 20*time.Second)
	var h history
	m.Subscribe(h.add)
	must(t, p.Expire(patient(t), s.ID()))
	within(t, s.Done(), "the end of the session")
	wantErr(t, "session", s.Err(), session.ErrLost)
	if s.Remaining() != 0 {
		t.Errorf("%v remain of a lost session", s.Remaining())
	}
	_, _, err := s.Get(patient(t), "/")
	wantErr(t, "a request", err, session.ErrLost)
	next := testserver.Session(t, m)
	if next.ID() == s.ID() {
		t.Error("the same session again")
	}
	must(t, next.Sync(patient(t), "/"))
	zktest.Eventually(t, testserver.Patience, "Lost, Connecting, Connected", func() bool {
		states := h.states()
		return len(states) > 3 && states[len(states)-3] == session.Lost &&
			states[len(states)-2] == session.Connecting && states[len(states)-1] == session.Connected
	})
}

// A client that is cut off knows it before the server expires the session, while its node is
// still there for all others to see.
func TestClockRunsOutFirst(t *testing.T) {
	longtest.Only(t)
	p, m, s := behindProxy(t, 10*time.Second)
	d := ephemeral(t, s)
	there, _, gone, err := testserver.Admin(t).ExistsW(d + "/node")
	must(t, err)
	if !there {
		t.Fatal("lost before it was cut off")
	}
	p.Blackhole(zktest.Both)
	// Ask at the moment when the node is known to be gone. The client must not believe in its hold
	// then, even if the news has not reached it. It may have stopped believing before.
	select {
	case <-gone:
	case <-time.After(2 * testserver.Patience):
		t.Fatal("the server has not expired the session")
	}
	if s.Err() == nil {
		t.Error("the server has expired the session before it knew itself lost")
	}
	wantErr(t, "session", s.Err(), session.ErrLost)
	within(t, s.Done(), "Done")
	if state := m.State(); state == session.Connected || state == session.Suspended {
		t.Errorf("the manager is %v", state)
	}
	testserver.WaitChildren(t, d, 0)
	p.Heal()
	if testserver.Session(t, m) == s {
		t.Error("the lost session came back")
	}
}

// Only the way back is cut: pings still reach the server and would keep the session alive there
// forever.
func TestLostSessionIsClosedOnServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the server would expire the session by itself, two seconds later
		srv := zktest.Start(t)
		_, s := virtually(t, "any:2181", srv.Dialer(), session.WithTimeout(5*time.Second))
		_, err := makeNode(t.Context(), s, "/node", nil)
		must(t, err)
		srv.Blackhole(zktest.ToClient)
		<-s.Done()
		srv.Heal()
		time.Sleep(time.Second)
		_, other := virtually(t, "any:2181", srv.Dialer())
		if stat, err := other.Exists(t.Context(), "/node"); stat != nil || err != nil {
			t.Errorf("the node of the lost session: %+v, %v", stat, err)
		}
		if srv.Count(zktest.Any(zktest.OpClose)) == 0 {
			t.Error("the server was not asked to close the session")
		}
	})
}

func TestLossOnSuspend(t *testing.T) {
	p, m, s := behindProxy(t, 50*time.Second, session.WithLossOnSuspend()) // longer than the test takes
	d := ephemeral(t, s)
	p.Disconnect()
	within(t, s.Done(), "the loss")
	wantErr(t, "session", s.Err(), session.ErrLost)
	testserver.WaitChildren(t, d, 0)
	must(t, testserver.Session(t, m).Sync(patient(t), "/"))
}

func TestSuspension(t *testing.T) {
	p, m, s := behindProxy(t, 10*time.Second)
	var h history
	m.Subscribe(h.add)
	p.Refuse(true)
	p.Disconnect()
	h.wait(t, session.Connected, session.Suspended)
	if m.State() != session.Suspended || s.Err() != nil || s.Remaining() <= 0 {
		t.Errorf("%v, %v, %v remain", m.State(), s.Err(), s.Remaining())
	}
	p.Heal()
	h.wait(t, session.Connected, session.Suspended, session.Connected)
	if testserver.Session(t, m) != s {
		t.Error("another session")
	}
}

// The answers of an idle session come from the leader, often enough for the clock.
func TestHeartbeats(t *testing.T) {
	longtest.Only(t)
	p, _, s := behindProxy(t, 10*time.Second)
	p.ResetRequests()
	zktest.Eventually(t, 2*testserver.Patience, "heartbeats for one and a half timeouts", func() bool {
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
		return p.Count(zktest.Any(zktest.OpSync)) >= 5
	})
}

func TestServerPausedAndRestarted(t *testing.T) {
	longtest.Only(t)
	e := zktest.StartReal(t, zktest.TickTime(200*time.Millisecond))
	open := func(timeout time.Duration) (*session.Manager, *session.Session) {
		m := testserver.Connect(t, e.ConnectString(), session.WithTimeout(timeout))
		return m, testserver.Session(t, m)
	}
	_, s := open(time.Minute) // it must outlast the start of a Java machine on a busy host
	_, err := makeNode(patient(t), s, "/node", nil)
	must(t, err)
	must(t, e.Pause(0))
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _, err = s.Get(ctx, "/node")
	wantErr(t, "get of a paused server", err, context.DeadlineExceeded)
	must(t, e.Resume(0))
	_, _, err = s.Get(patient(t), "/node")
	must(t, err)
	must(t, e.Restart(t.Context(), 0))
	// While it starts, a server of 3.9 can take a connection that it then neither serves nor ends. The client gives it half
	// of what remains of the session.
	ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, _, err = s.Get(ctx, "/node")
	must(t, err)
	must(t, s.Err())

	m, s := open(4 * time.Second)
	must(t, e.Pause(0))
	zktest.Eventually(t, testserver.Patience, "the loss", func() bool { return s.Err() != nil })
	must(t, e.Resume(0))
	if testserver.Session(t, m) == s {
		t.Error("the lost session came back")
	}
}

// If a lost connection is a loss, requests in flight end with that, and not with an error that is worth another try.
func TestLossOnSuspendInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		_, s := virtually(t, "h:1", srv.Dialer(), session.WithLossOnSuspend())
		held := srv.HoldReply(zktest.Any(zktest.OpCreate))
		defer held.Release()
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				_, err := makeNode(t.Context(), s, fmt.Sprint("/n", i), nil)
				if !errors.Is(err, session.ErrLost) {
					t.Errorf("create %d: %v", i, err)
				}
			})
		}
		synctest.Wait()
		srv.Disconnect()
		all.Wait()
	})
}
