package core

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/loglines"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest"
)

func connRefused() error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// door is a dialer that can be shut.
type door struct {
	dial dialFunc
	why  atomic.Pointer[error] // nil: it is open
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

func (d *door) shut(why error) { d.why.Store(&why) }
func (d *door) open()          { d.why.Store(nil) }

func (d *door) through(ctx context.Context, network, addr string) (net.Conn, error) {
	if why := d.why.Load(); why != nil {
		return nil, *why
	}
	return d.dial(ctx, network, addr)
}

// managed opens a manager that logs to a recorder, and closes it at the end of the bubble.
func managed(t *testing.T, servers string, dial dialFunc, opts ...Option) (*Manager, *loglines.Recorder) {
	t.Helper()
	r := loglines.New()
	m, err := open(servers, append([]Option{WithLogger(slog.New(r)), WithTickTime(2 * time.Second), WithDialer(dial)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m, r
}

func live(t *testing.T, m *Manager) *Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	s, err := m.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wantLine checks that exactly one line has all of the texts, and returns it.
func wantLine(t *testing.T, r *loglines.Recorder, level slog.Level, texts ...string) loglines.Line {
	t.Helper()
	var found []loglines.Line
	for _, l := range r.All() {
		has := l.Level == level
		for _, text := range texts {
			has = has && strings.Contains(l.Text, text)
		}
		if has {
			found = append(found, l)
		}
	}
	if len(found) != 1 {
		t.Errorf("%d lines of level %v with %q, want one", len(found), level, texts)
		return loglines.Line{}
	}
	return found[0]
}

// No server can be reached for an hour, at the start of a program. The log says why within
// seconds, does not repeat it often, and says when it is over.
func TestLogOutageAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		d := &door{dial: zktest.Start(t).Dialer()}
		d.shut(connRefused())
		m, r := managed(t, "zk1:2181,zk2:2181", d.through)
		defer r.Show(t, start)
		time.Sleep(time.Hour)
		lines := r.All()
		if len(lines) == 0 || len(lines) >= 30 {
			t.Fatalf("%d lines in an hour", len(lines))
		}
		const first = "dial zk1:2181: connection refused; dial zk2:2181: connection refused"
		if after := lines[0].At.Sub(start); after > 5*time.Second || !strings.Contains(lines[0].Text, first) {
			t.Errorf("after %v: %s", after, lines[0].Text)
		}
		for _, l := range lines {
			if l.Level != slog.LevelWarn || !strings.Contains(l.Text, "no connection to zookeeper") {
				t.Errorf("%s", l.Text)
			}
		}
		d.open()
		live(t, m)
		wantLine(t, r, slog.LevelInfo, `"zookeeper session opened" session=0x`, " server=zk", " outage=1h")
		if n := len(r.All()); n != len(lines)+1 {
			t.Errorf("%d lines when it was over, want one", n-len(lines))
		}
	})
}

// The same outage, of a live session: the log says in addition that the session is suspended, for
// how long its locks stay certain, and that it is lost.
func TestLogOutageOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		d := &door{dial: srv.Dialer()}
		m, r := managed(t, "zk1:2181", d.through)
		live(t, m)
		time.Sleep(time.Minute)
		start := time.Now()
		defer r.Show(t, start)
		d.shut(connRefused())
		srv.Disconnect()
		time.Sleep(time.Hour)
		s := wantLine(t, r, slog.LevelWarn, "zookeeper session suspended", " session=0x", " server=zk1:2181 ",
			` cause="the server closed the connection"`, " remaining=")
		l := wantLine(t, r, slog.LevelWarn, "zookeeper session lost", " session=0x", " server=zk1:2181 ", ` cause="`+lossClock.Error()+`"`)
		if left := l.At.Sub(s.At); left > 10*time.Second || left < time.Second {
			t.Errorf("lost after %v", left)
		}
		if n := len(r.All()); n >= 30 {
			t.Errorf("%d lines", n)
		}
		if n := r.With("no connection"); len(n) == 0 || n[0].At.Sub(start) > 5*time.Second {
			t.Error("no reason within 5 s")
		}
		d.open()
		live(t, m)
		wantLine(t, r, slog.LevelInfo, `"zookeeper session opened"`, " outage=1h")
		if len(r.With("<nil>")) > 0 {
			t.Error("a nil cause in the log")
		}
	})
}

// A connection that breaks and is replaced at once makes two lines. The second one says which
// server it is now.
func TestLogReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		m, r := managed(t, "zk1:2181,zk2:2181", srv.Dialer())
		s := live(t, m)
		time.Sleep(time.Minute)
		before := s.server().Name()
		synctest.Wait()
		wantLine(t, r, slog.LevelInfo, "zookeeper session opened", " server="+before+" timeout=10s")
		srv.Disconnect()
		time.Sleep(time.Second)
		after := s.server().Name()
		if after == before {
			t.Fatal("the same server again")
		}
		wantLine(t, r, slog.LevelWarn, "zookeeper session suspended", " server="+before+" ")
		wantLine(t, r, slog.LevelInfo, "zookeeper session reconnected", " server="+after+" timeout=10s outage=")
		if all := r.All(); len(all) != 3 {
			r.Show(t, time.Now())
			t.Errorf("%d lines, want 3", len(all))
		}
		_ = m.Close()
		wantLine(t, r, slog.LevelInfo, "zookeeper session closed")
	})
}

// A connection that breaks all the time does not fill the log. Lines that are left out are counted.
func TestLogFlaps(t *testing.T) {
	const flapsLogged, flapWindow = 10, 10 * time.Minute // as WithLogger says
	windows := longtest.Pick(2, 6)
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		door := &door{dial: srv.Dialer()}
		m, r := managed(t, "zk1:2181,zk2:2181", door.through)
		live(t, m)
		for began := time.Now(); time.Since(began) < time.Duration(windows)*flapWindow; {
			time.Sleep(5 * time.Second)
			srv.Disconnect()
		}
		before := len(r.With("session reconnected"))
		door.shut(connRefused())
		srv.Disconnect()
		time.Sleep(3 * time.Second)
		door.open()
		time.Sleep(time.Second)
		if n := len(r.With("session reconnected")); len(r.With("no connection")) == 0 || n != before+1 {
			t.Error("the end of an outage that was in the log is not in the log")
		}
		time.Sleep(flapWindow)
		srv.Disconnect()
		time.Sleep(time.Second)
		suspended, again := r.With("session suspended"), r.With("session reconnected")
		if len(suspended) > (windows+1)*flapsLogged+1 || len(suspended) < flapsLogged || len(again) != len(suspended)+1 {
			t.Errorf("%d lines of suspensions, %d of reconnections", len(suspended), len(again))
		}
		if last := suspended[len(suspended)-1].Text; !strings.Contains(last, " unlogged=") {
			t.Errorf("%s", last)
		}
	})
}

// The servers grant another timeout than was asked for. There is one warning, and not one for each
// session and connection.
func TestLogTimeoutGranted(t *testing.T) {
	for _, c := range []struct {
		asked, shortest, longest, granted time.Duration
		advice                            string
	}{
		{time.Minute, 4 * time.Second, 40 * time.Second, 40 * time.Second, "raise maxSessionTimeout on every server: it is 20 ticks"},
		{time.Second, 4 * time.Second, 40 * time.Second, 4 * time.Second, "lower minSessionTimeout on every server: it is two ticks"},
		{10 * time.Second, 4 * time.Second, 40 * time.Second, 10 * time.Second, ""},
		{10*time.Second + 300*time.Microsecond, 4 * time.Second, 40 * time.Second, 10 * time.Second, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.MinSessionTimeout(c.shortest), zktest.MaxSessionTimeout(c.longest))
			m, r := managed(t, "zk1:2181", srv.Dialer(), WithTimeout(c.asked))
			for range 3 {
				s := live(t, m)
				time.Sleep(time.Minute)
				srv.Disconnect()
				time.Sleep(time.Minute)
				s.lose(lossExpired)
				<-s.Done()
			}
			if c.advice != "" {
				wantLine(t, r, slog.LevelWarn, "another session timeout", " session=0x", " server=zk1:2181 ",
					" asked="+c.asked.String()+" ", " granted="+c.granted.String()+" ", c.advice, " "+c.granted.String()+" or ")
			} else if got := r.With("another session timeout"); len(got) > 0 {
				t.Errorf("%s", got[0].Text)
			}
		})
	}
}

// A log handler that hangs delays nothing.
func TestLogHandlerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		defer close(hang)
		srv := zktest.Start(t)
		m, err := connect(t.Context(), "zk1:2181", WithDialer(srv.Dialer()),
			WithLogger(slog.New(hanging{slog.DiscardHandler, hang})))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		s := live(t, m)
		time.Sleep(time.Minute)
		srv.Disconnect()
		time.Sleep(time.Minute)
		if err := errors.Join(s.Err(), s.Sync(t.Context(), "/")); err != nil {
			t.Error(err)
		}
	})
}

type hanging struct {
	slog.Handler
	until chan struct{}
}

func (h hanging) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (h hanging) Handle(context.Context, slog.Record) error    { <-h.until; return nil }
