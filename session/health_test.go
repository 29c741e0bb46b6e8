package session_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// setting is what decides whether heartbeats can keep a session alive.
type setting struct {
	timeout, tick, margin time.Duration // margin 0: the default
	told                  bool          // WithTickTime is given
}

func (c setting) String() string {
	return fmt.Sprintf("timeout %v, tick %v, margin %v, told %v", c.timeout, c.tick, c.margin, c.told)
}

func (c setting) options() []session.Option {
	opts := []session.Option{session.WithTimeout(c.timeout)}
	if c.told {
		opts = append(opts, session.WithTickTime(c.tick))
	}
	if c.margin > 0 {
		opts = append(opts, session.WithMargin(c.margin))
	}
	return opts
}

// Whatever the options are, there is either an error that says why they cannot work, or a session that
// owns a node lives on healthy servers. What the options alone tell fails before anything is sent.
func TestAcceptedOptionsKeepSessions(t *testing.T) {
	const ms = time.Millisecond
	var all []setting
	for _, timeout := range []time.Duration{200 * ms, 250 * ms, 400 * ms, 600 * ms, 4 * time.Second, 10 * time.Second} {
		for _, ticks := range []time.Duration{2, 5, 20} {
			for _, percent := range []time.Duration{0, 10, 30, 45, 50, 90} {
				for _, told := range []bool{true, false} {
					all = append(all, setting{timeout, (timeout / ticks).Truncate(ms), timeout * percent / 100, told})
				}
			}
		}
	}
	sample := longtest.Pick(13, 1)
	served, refused, unsent := 0, 0, 0
	for i, c := range all {
		if i%sample != 0 {
			continue
		}
		for idle := range 4 { // what a first lock proves depends on when it comes
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.TickTime(c.tick))
				srv.Delay(time.Duration(idle%2) * c.timeout / 100) // a round trip of a fiftieth of the timeout
				m, err := session.Open("h:1", append(c.options(), quiet, session.WithDialer(srv.Dialer()))...)
				var s *session.Session
				if err != nil {
					unsent++
				} else {
					defer m.Close()
					s, err = m.Session(t.Context())
				}
				if err != nil {
					refused++
					wantErr(t, c.String(), err, session.ErrInvalid)
					if !strings.Contains(err.Error(), "heartbeats need one of") {
						t.Errorf("%v: %v", c, err)
					}
					return
				}
				served++
				time.Sleep(time.Duration(idle) * 10 * c.timeout / 9)
				must(t, s.Err())
				must(t, expect.Err(makeNode(t.Context(), s, "/own", nil)))
				for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(c.timeout / 20) {
					if err := s.Err(); err != nil {
						t.Fatalf("%v, after %v without a node: lost within %v: %v", c, time.Duration(idle)*c.timeout, time.Since(began), err)
					}
				}
			})
		}
	}
	if served == 0 || unsent == 0 || refused == unsent {
		t.Errorf("%d settings were served, %d refused, %d of them at once", served, refused, unsent)
	}
}

// A server that restarts with a limit that is too short for locks costs the session at once: it counts by
// that timeout. The manager says why, and has a session again when the limit is raised.
func TestGrantTooShortForLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.TickTime(100*time.Millisecond))
		m, s := virtually(t, "h:1", srv.Dialer())
		testserver.Switch(srv).SetSessionTimeoutsOf(0, 200*time.Millisecond, 300*time.Millisecond)
		srv.Disconnect()
		<-s.Done()
		wantErr(t, "the session", s.Err(), session.ErrLost)
		wantErr(t, "the session", s.Err(), session.ErrInvalid)
		time.Sleep(time.Minute)
		wantErr(t, "the next session", expect.Err(m.Session(t.Context())), session.ErrInvalid)
		testserver.Switch(srv).SetSessionTimeoutsOf(0, 200*time.Millisecond, 10*time.Second)
		time.Sleep(time.Minute)
		s, err := m.Session(t.Context())
		must(t, err)
		must(t, s.Err())
	})
}

// A margin that a granted timeout has no room for is shortened, and a warning says so once.
func TestShorterMarginIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines strings.Builder
		log := session.WithLogger(slog.New(slog.NewTextHandler(&lines, nil)))
		srv := zktest.Start(t, zktest.MaxSessionTimeout(4*time.Second))
		m, s := virtually(t, "h:1", srv.Dialer(), session.WithTimeout(20*time.Second), session.WithMargin(3*time.Second), log)
		if left := s.Remaining(); left > 4*time.Second-1520*time.Millisecond || left < 2*time.Second {
			t.Errorf("%v remain of a timeout of %v", left, s.Timeout())
		}
		must(t, srv.Expire(t.Context(), s.ID()))
		time.Sleep(time.Minute)
		must(t, m.Close())
		if n := strings.Count(lines.String(), "shorter margin than asked for"); n != 1 {
			t.Errorf("%d warnings:\n%s", n, &lines)
		}
	})
}
