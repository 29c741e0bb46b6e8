package lockz_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// now returns the page's only manager, and fails the test if the page took any time.
func (p *process) now(t *testing.T) lockz.Manager {
	t.Helper()
	before := time.Now()
	m := pageOf(t, p.page).Managers[0]
	if took := time.Since(before); took != 0 { // in virtual time
		t.Errorf("the page took %v", took)
	}
	return m
}

// During an outage the page is answered at once. The time for which the holds are certain counts down,
// and after it no hold is shown but its loss. The page shows why there is no connection, and the next
// session after the outage.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		us, other := newProcess(t, srv), newProcess(t, srv)
		lock(t, mutex(t, other.Manager, "/b"), "")
		mx := mutex(t, us.Manager, "/a")
		must(t, mx.Lock(queue.WithLabel(t.Context(), "request 42")))
		wait(t, mutex(t, us.Manager, "/b"), "")
		synctest.Wait()
		before := us.now(t)
		if before.State != "connected" || !before.StateSince.IsZero() || len(before.Holds) != 1 || before.Failure != "" || before.Server != "zk-1:2181" {
			t.Fatalf("before the outage: %+v", before)
		}

		srv.Blackhole(zktest.Both)
		srv.Refuse(true)
		last := before.Session.RemainingSeconds
		left := timeout
		for us.State() != session.Lost {
			time.Sleep(500 * time.Millisecond)
			m := us.now(t)
			if m.Session == nil {
				break
			}
			left = time.Duration(m.Session.RemainingSeconds * float64(time.Second))
			if m.Session.RemainingSeconds > last || len(m.Holds) != 1 || m.Holds[0].RemainingSeconds != m.Session.RemainingSeconds {
				t.Fatalf("after %vs, %+v", last, m)
			}
			last = m.Session.RemainingSeconds
		}
		if left > time.Second {
			t.Errorf("%v before the loss, %v remained", 500*time.Millisecond, left)
		}
		if m := us.now(t); len(m.Holds) != 0 {
			t.Fatalf("at the loss: %+v", m)
		}
		lost := us.shown(t)
		if len(lost.Holds) != 0 || len(lost.Losses) != 1 || len(lost.Waits) != 1 || lost.SessionLossCount > 1 {
			t.Fatalf("after the loss: %+v", lost)
		}
		l := lost.Losses[0]
		if l.Path != "/a" || l.Label != "request 42" || !l.Since.Equal(before.Holds[0].Since) || !strings.Contains(l.Cause, before.Session.ID) {
			t.Errorf("the loss: %+v", l)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		m := us.now(t)
		if m.State != "connecting" || m.Session != nil || m.Failure == "" || m.SessionLossCount != 1 ||
			m.LastSessionLoss == nil || m.LastSessionLoss.ID != before.Session.ID || !m.StateSince.After(before.Recording) {
			t.Errorf("without a session: %+v", m)
		}
		if w := m.Waits[0]; w.Behind != nil {
			t.Errorf("a waiter without a session is behind %+v", w.Behind)
		}
		for _, query := range []string{"?format=html", "?format=json"} {
			if code := get(us.page, query, "").Code; code != 200 {
				t.Errorf("%s: status %d", query, code)
			}
		}

		srv.Heal()
		srv.Refuse(false)
		time.Sleep(timeout)
		synctest.Wait()
		after := us.now(t)
		if after.State != "connected" || after.Failure != "" || after.Session == nil || after.Session.ID == before.Session.ID {
			t.Errorf("after the outage: %+v", after)
		}
		if err := mx.Unlock(); !errors.Is(err, session.ErrLost) {
			t.Error(err)
		}
	})
}

// In the moment in which the session's clock runs out, no hold is shown any more. The loss is shown when
// the hooks have been told.
func TestPageAsksTheClock(t *testing.T) {
	for range 20 { // the goroutines that wake in that moment run in any order
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			us := newProcess(t, srv)
			lock(t, mutex(t, us.Manager, "/a"), "")
			synctest.Wait()
			srv.Blackhole(zktest.Both)
			srv.Refuse(true)
			time.Sleep(liveSession(t, us).Remaining())
			if m := us.now(t); len(m.Holds) != 0 {
				t.Errorf("%+v", m)
			}
			if m := us.shown(t); len(m.Holds) != 0 || m.LossCount != 1 {
				t.Errorf("afterwards: %+v", m)
			}
		})
	}
}

func liveSession(t *testing.T, p *process) *session.Session {
	t.Helper()
	s, err := p.Session(t.Context())
	must(t, err)
	return s
}

// A closed manager is shown as closed, and what it held is no loss.
func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		us := newProcess(t, zktest.Start(t))
		must(t, mutex(t, us.Manager, "/a").Lock(t.Context()))
		must(t, us.Close())
		m := us.shown(t)
		if m.State != "closed" || m.Session != nil || len(m.Holds)+len(m.Waits)+len(m.Losses) != 0 || m.LossCount != 0 {
			t.Errorf("%+v", m)
		}
		closed := lockz.Handler(us.Manager) // a manager that is closed already
		if got := pageOf(t, closed).Managers[0].State; got != "closed" {
			t.Error(got)
		}
	})
}

// The page keeps the last 20 losses, the latest first, and counts all.
func TestLossesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		us := newProcess(t, srv)
		for i := range 25 {
			mx := mutex(t, us.Manager, fmt.Sprintf("/a%d", i))
			lease, err := mx.Acquire(t.Context())
			must(t, err)
			must(t, srv.DeleteNode("/app"+lease.Path()))
			<-lease.Done()
			must(t, context.Cause(t.Context()))
		}
		m := us.shown(t)
		if len(m.Losses) != 20 || m.LossCount != 25 || m.Losses[0].Path != "/a24" || m.Losses[19].Path != "/a5" || m.SessionLossCount != 0 {
			t.Errorf("%d of %d losses, %v", len(m.Losses), m.LossCount, lines(m))
		}
	})
}

// The page calls no hook, and waits for none. A hook that never returns does not keep it from showing that a hold is lost.
func TestPageWaitsForNoHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		forEver := make(chan struct{})
		us := newProcess(t, srv, session.WithTrace(session.Trace{
			Loss: func(context.Context, session.HoldInfo, error) { <-forEver },
		}))
		must(t, mutex(t, us.Manager, "/a").Lock(t.Context()))
		synctest.Wait()
		if m := us.now(t); len(m.Holds) != 1 {
			t.Fatalf("before the outage: %+v", m)
		}
		srv.Blackhole(zktest.Both)
		srv.Refuse(true)
		for us.State() != session.Lost {
			time.Sleep(100 * time.Millisecond)
			m := us.now(t)
			if len(m.Holds) == 1 != (m.Session != nil) {
				t.Fatalf("the session is %+v, and the holds are %+v", m.Session, m.Holds)
			}
			if m.Session == nil {
				break
			}
		}
		synctest.Wait()
		if m := us.now(t); len(m.Holds) != 0 || len(m.Losses) != 0 {
			t.Errorf("while the hook blocks: %+v", m)
		}
		close(forEver)
		if m := us.shown(t); len(m.Losses) != 1 {
			t.Errorf("afterwards: %+v", m)
		}
	})
}
