package lockz_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// state is what a page says of a manager's connection.
func state(m lockz.Manager) string {
	text := m.State
	if m.Session == nil {
		text += ", no session"
	}
	if m.Failure != "" {
		text += ", a failure"
	}
	if !m.StateSince.IsZero() {
		text += ", since a while"
	}
	if m.SessionLossCount > 0 {
		text += fmt.Sprintf(", %d sessions lost, the last %s", m.SessionLossCount, m.LastSessionLoss.ID)
	}
	return text
}

func (t *world) isIn(want string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, state(t.now())); diff != "" {
		t.Errorf("the state (-want +got):\n%s", diff)
	}
}

// During an outage the page is answered at once. The time for which the holds are certain counts down, and after it no hold
// is shown but its loss. The page shows why there is no connection, and the next session after the outage.
func TestOutage(t *testing.T) {
	inBubble(t, func(t *world) {
		lock(t, mutex(t, t.other, "/b"), "")
		mx := mutex(t, t.us, "/a")
		must(t, mx.Lock(labelled(t.Context(), "request 42")))
		t.wait(mutex(t, t.us, "/b"), "")
		t.isIn("connected")
		before := t.now()
		if before.Server != "zk-1:2181" {
			t.Errorf("server %q", before.Server)
		}

		t.cut()
		const step = 500 * time.Millisecond
		last, least := before.Session.RemainingSeconds, timeout.Seconds()
		for m := before; m.Session != nil; m = t.now() {
			least = m.Session.RemainingSeconds
			if least > last || len(m.Holds) != 1 || m.Holds[0].RemainingSeconds != least {
				t.Fatalf("after %vs, %+v", last, m)
			}
			last = least
			time.Sleep(step)
		}
		if least > 2*step.Seconds() {
			t.Errorf("%v before the loss, %v s remained", step, least)
		}
		t.shows("waits mutex /b", "lost mutex /a request 42")
		l := t.now().Losses[0]
		if !l.Since.Equal(before.Holds[0].Since) || !strings.Contains(l.Cause, before.Session.ID) {
			t.Errorf("the loss: %+v", l)
		}
		time.Sleep(time.Second)
		t.isIn("connecting, no session, a failure, since a while, 1 sessions lost, the last " + before.Session.ID)
		t.shows("waits mutex /b", "lost mutex /a request 42") // and behind nobody
		if code := get(t.page, "?format=html", "").Code; code != 200 {
			t.Errorf("HTML: status %d", code)
		}

		t.server.Heal()
		t.server.Refuse(false)
		time.Sleep(timeout)
		t.isIn("connected, since a while, 1 sessions lost, the last " + before.Session.ID)
		if t.now().Session.ID == before.Session.ID {
			t.Error("the same session")
		}
		wantErr(t, "Unlock", mx.Unlock(), session.ErrLost)
	})
}

// In the moment in which the session's clock runs out, no hold is shown any more. The loss is shown when the hooks have been
// told. The page calls no hook, and waits for none, even for one that never returns.
func TestPageAsksTheClock(t *testing.T) {
	for i := range 20 { // the goroutines that wake in that moment run in any order
		var goOn chan struct{} // of the bubble
		inBubble(t, func(t *world) {
			goOn = make(chan struct{}, 1)
			lock(t, mutex(t, t.us, "/a"), "")
			synctest.Wait()
			t.cut()
			time.Sleep(testserver.Session(t, t.us).Remaining())
			if m := t.now(); len(m.Holds) != 0 {
				t.Errorf("%+v", m)
			}
			if i%2 == 0 {
				t.shows()
			}
			goOn <- struct{}{}
			t.shows("lost mutex /a")
		}, session.WithTrace(session.Trace{Loss: func(context.Context, session.HoldInfo, error) {
			if i%2 == 0 {
				<-goOn
			}
		}}))
	}
}

// A closed manager is shown as closed, and what it held is no loss.
func TestClosed(t *testing.T) {
	inBubble(t, func(t *world) {
		must(t, mutex(t, t.us, "/a").Lock(t.Context()))
		must(t, t.us.Close())
		t.isIn("closed, no session, since a while")
		t.shows()
		t.page = lockz.Handler(t.us) // of a manager that is closed already
		t.isIn("closed, no session, since a while")
	})
}

// The page keeps the last 20 losses, the latest first, and counts all. A page for a person is bounded too, and says how much
// more there is.
func TestBounds(t *testing.T) {
	const many = 520
	inBubble(t, func(t *world) {
		for i := range 25 {
			lease := lock(t, mutex(t, t.us, fmt.Sprintf("/a%d", i)), "")
			must(t, t.server.DeleteNode("/app"+lease.Path()))
			<-lease.Done()
		}
		synctest.Wait()
		m := t.now()
		if n := len(m.Losses); n != 20 || m.LossCount != 25 || m.Losses[0].Path != "/a24" || m.Losses[19].Path != "/a5" {
			t.Errorf("%d of %d losses, %v", n, m.LossCount, lines(m))
		}
		for i := range many {
			must(t, mutex(t, t.us, fmt.Sprintf("/b%d", i)).Lock(t.Context()))
		}
		body := get(t.page, "", "").Body.String()
		n := strings.Count(body, `data-name="Token"`)
		if n != 500 || !strings.Contains(body, ">520<") || !strings.Contains(body, "20 more") {
			t.Errorf("%d rows", n)
		}
		if n := len(t.now().Holds); n != many {
			t.Errorf("%d holds in the JSON", n)
		}
	})
}

// Pages are asked for while locks of all kinds come and go and the connection breaks. In the end the page is empty.
func TestConcurrentSafe(t *testing.T) {
	const workers, times = 6, 10
	proxy, dir := testserver.Proxy(t), testserver.Path(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithBackoff(time.Millisecond, time.Millisecond))
	page := lockz.Handler(m)
	locks := []*zklock.Mutex{
		mutex(t, m, dir+"/a"), mutex(t, m, dir+"/b", zklock.WithLocalHandover(3)),
		mutex(t, m, dir+"/c", zklock.WithLazyRelease(time.Second)),
	}
	var stop atomic.Bool
	var readers, g errgroup.Group
	for _, query := range []string{"", "?format=json"} {
		readers.Go(func() error {
			for !stop.Load() {
				if code := get(page, query, "").Code; code != http.StatusOK {
					return fmt.Errorf("status %d", code)
				}
				lockz.Handler(m)
			}
			return nil
		})
	}
	for i := range workers {
		g.Go(func() error {
			for j := range times {
				patience := testserver.Patience
				if (i+j)%4 == 0 {
					patience = time.Millisecond // and gives up
				}
				ctx, cancel := context.WithTimeout(labelled(t.Context(), "worker"), patience)
				lease, err := locks[(i+j)%len(locks)].Acquire(ctx)
				if cancel(); err == nil {
					_ = lease.Release(t.Context())
				} else if !errors.Is(err, context.DeadlineExceeded) {
					return err
				}
				if i == 0 && j == 5 {
					proxy.Disconnect()
				}
			}
			return nil
		})
	}
	must(t, g.Wait())
	stop.Store(true)
	must(t, readers.Wait())
	zktest.Eventually(t, testserver.Patience, "an empty page", func() bool { return lines(pageOf(t, page).Managers[0]) == nil })
}
