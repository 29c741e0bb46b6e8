package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
// owns a node lives on healthy servers.
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
	served, refused := 0, 0
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
				if err == nil {
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
				_, err = makeNode(t.Context(), s, "/own", nil)
				must(t, err)
				for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(c.timeout / 20) {
					if err := s.Err(); err != nil {
						t.Fatalf("%v, after %v without a node: lost within %v: %v", c, time.Duration(idle)*c.timeout, time.Since(began), err)
					}
				}
			})
		}
	}
	if served == 0 || refused == 0 {
		t.Errorf("%d settings were served, %d refused", served, refused)
	}
}

// What the options alone tell fails before anything is sent, and what only a server tells fails once it has.
func TestSettingsThatCannotWork(t *testing.T) {
	const ms, second = time.Millisecond, time.Second
	for _, c := range []struct {
		setting
		open   bool // Open fails
		serves bool
	}{
		{setting{4 * second, 2 * second, 2 * second, true}, true, false},
		{setting{10 * second, 5 * second, 5 * second, true}, true, false},
		{setting{10 * second, 5 * second, 3900 * ms, true}, false, true},
		{setting{400 * ms, 200 * ms, 0, true}, true, false},
		{setting{400 * ms, 40 * ms, 0, true}, false, true},
		{setting{200 * ms, 2 * second, 0, true}, false, true}, // granted two ticks
		{setting{4 * second, 2 * second, 2 * second, false}, false, true},
		{setting{400 * ms, 200 * ms, 0, false}, false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.TickTime(c.tick))
			opts := append(c.options(), quiet, session.WithDialer(srv.Dialer()))
			m, err := session.Open("h:1", opts...)
			if (err != nil) != c.open {
				t.Fatalf("%v: Open: %v", c.setting, err)
			}
			if err != nil {
				wantErr(t, c.String(), err, session.ErrInvalid)
				return
			}
			defer m.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err = m.Session(ctx); c.serves {
				must(t, err)
				return
			}
			wantErr(t, c.String(), err, session.ErrInvalid)
			if errors.Is(err, ctx.Err()) && ctx.Err() != nil {
				t.Errorf("%v: it took a minute: %v", c.setting, err)
			}
		})
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
		_, err := m.Session(t.Context())
		wantErr(t, "the next session", err, session.ErrInvalid)
		testserver.Switch(srv).SetSessionTimeoutsOf(0, 200*time.Millisecond, 10*time.Second)
		time.Sleep(time.Minute)
		s, err = m.Session(t.Context())
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

// A session does not get larger with time, whether it idles, reads or owns a node. What could grow is
// what it notes of each answer, and a day with tens of thousands of them shows that. TestTrailIsBounded of
// internal/clock has a month.
func TestSessionDoesNotGrow(t *testing.T) {
	const timeout, hour = 10 * time.Second, time.Hour
	for name, habit := range map[string]struct {
		owns         bool
		every        time.Duration // between two reads; 0: none
		early, after time.Duration
	}{
		"idles":                 {early: hour, after: longtest.Pick(2*hour, 24*hour)},
		"reads often":           {every: 50 * time.Millisecond, early: hour / 12, after: longtest.Pick(hour/3, hour)},
		"owns a node and reads": {owns: true, every: time.Second, early: hour / 2, after: longtest.Pick(hour, 6*hour)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				_, s := virtually(t, "h:1", srv.Dialer(), session.WithTimeout(timeout), session.WithTickTime(2*time.Second))
				path, err := "/node", makeDir(t.Context(), s, "/node")
				must(t, err)
				if habit.owns {
					path, err = makeNode(t.Context(), s, "/own", nil)
					must(t, err)
				}
				begun := time.Now()
				live := func(until time.Duration) {
					for time.Since(begun) < until {
						if habit.every == 0 {
							time.Sleep(time.Minute)
							continue
						}
						time.Sleep(habit.every)
						_, _, err := s.Get(t.Context(), path)
						must(t, err)
					}
				}
				live(habit.early)
				early := heapWithout(srv)
				live(habit.after)
				late := heapWithout(srv)
				must(t, s.Err())
				if late > early+early/10 {
					t.Errorf("the heap had %d kB after %v, and %d kB after %v", early>>10, habit.early, late>>10, habit.after)
				}
			})
		})
	}
}

// heapWithout returns how many bytes are in use, without what the server notes of its requests.
func heapWithout(srv *zktest.Server) uint64 {
	srv.ResetRequests()
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
