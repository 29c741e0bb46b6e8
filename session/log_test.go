package session_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// logged returns a logger from the level info on, with what it has written.
func logged() (session.Option, *logText) {
	var text logText
	return session.WithLogger(slog.New(slog.NewTextHandler(&text, nil))), &text
}

// Each change of state has a line with its reason. The loss of a session has its line before anybody hears of the loss, and
// so before the lines of its locks. "session closed" comes when Close knows it, and before Close returns.
func TestLogOfStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, text := logged()
		srv := zktest.Start(t)
		m, s := virtually(t, "h:1", srv.Dialer(), log)
		s.AfterEnd(func() { m.Logger().Warn("lock lost") })
		time.Sleep(time.Second)
		srv.Disconnect()
		time.Sleep(time.Second)
		must(t, srv.Expire(t.Context(), s.ID()))
		time.Sleep(time.Second)
		held := srv.HoldReply(zktest.Any(zktest.OpClose))
		closed := expect.Go(func() error { return m.Close() })
		<-held.Hit()
		synctest.Wait()
		if strings.Contains(text.String(), "session closed") {
			t.Error("closed before the server has said so")
		}
		held.Release()
		must(t, <-closed)
		rest := text.String()
		for _, line := range []string{
			"INFO msg=\"zookeeper session opened\"",
			"WARN msg=\"zookeeper session suspended\"", "cause=\"the server closed the connection\"", "remaining=",
			"INFO msg=\"zookeeper session reconnected\"", "outage=",
			"WARN msg=\"zookeeper session lost\"", "cause=\"expired by the server\"",
			"WARN msg=\"lock lost\"",
			"INFO msg=\"zookeeper session opened\"",
			"INFO msg=\"zookeeper session closed\"",
		} {
			_, after, ok := strings.Cut(rest, line)
			if !ok {
				t.Fatalf("no %s, or not in this order:\n%s", line, text)
			}
			rest = after
		}
	})
}

// While there has never been a connection, warnings with growing gaps say what failed.
func TestLogWithoutAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, text := logged()
		m, err := session.Open("h:1,i:1", log, session.WithDialer(func(_ context.Context, _, addr string) (net.Conn, error) {
			return nil, errors.New("no route to " + addr)
		}))
		must(t, err)
		defer m.Close()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if want := `err="dial h:1: no route to h:1; dial i:1: no route to i:1"`; strings.Count(text.String(), want) != 1 {
			t.Errorf("after 3 s, want %s in\n%s", want, text)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := strings.Count(text.String(), "\n"); n < 10 || n > 30 {
			t.Errorf("%d lines in an hour", n)
		}
	})
}

// A connection that breaks again and again has ten lines in ten minutes. A loss has its line all the same, and after a
// quiet while a break has too.
func TestLogOfFlapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, text := logged()
		srv := zktest.Start(t)
		_, s := virtually(t, "h:1", srv.Dialer(), log)
		breaks := func(n int) {
			for range n {
				time.Sleep(2 * time.Second)
				srv.Disconnect()
			}
			time.Sleep(2 * time.Second)
		}
		count := func(line string, want int) {
			t.Helper()
			if n := strings.Count(text.String(), line); n != want {
				t.Errorf("%d lines %s, want %d", n, line, want)
			}
		}
		breaks(40)
		count("session suspended", 10)
		count("session reconnected", 10)
		time.Sleep(10 * time.Minute)
		breaks(1)
		count("session suspended", 11)
		breaks(20)
		must(t, srv.Expire(t.Context(), s.ID()))
		time.Sleep(time.Second)
		count("session lost", 1)
	})
}

// logText is what a logger has written.
type logText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The reasons that real servers give for having no session, in the words of the log.
func TestLogOfRealServers(t *testing.T) {
	longtest.Only(t)
	e := zktest.StartReal(t, zktest.Servers(3), zktest.Property("maxClientCnxns", "4"))
	must(t, e.WaitReady(patient(t)))
	noQuorum := func() {
		must(t, e.Stop(1))
		must(t, e.Stop(2))
	}
	for _, c := range []struct {
		name       string
		begin, end func()
		want       string
	}{
		{"too many connections", func() {
			for range 4 {
				m := testserver.Connect(t, e.Addr(0))
				t.Cleanup(func() { _ = m.Close() })
			}
		}, func() {}, " " + e.Addr(0) + ": the server hung up: it is not serving (starting, without a quorum, or read-only for want of one), has too many connections (maxClientCnxns)"},
		{"no quorum", noQuorum, func() {}, " " + e.Addr(0) + ": the server hung up: it is not serving"},
		{"paused", func() { must(t, e.Pause(0)) }, func() { must(t, e.Resume(0)) }, "handshake with " + e.Addr(0) + ": no answer"},
		{"stopped", func() { must(t, e.Kill(0)) }, func() {}, "dial " + e.Addr(0) + ": connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.begin()
			defer c.end()
			var text logText
			m, err := session.Open(e.Addr(0), session.WithLogger(slog.New(slog.NewTextHandler(&text, nil))))
			must(t, err)
			defer m.Close()
			zktest.Eventually(t, testserver.Patience, "a line that says why", func() bool {
				return strings.Contains(text.String(), "no connection to zookeeper")
			})
			if !strings.Contains(text.String(), c.want) {
				t.Errorf("want %q in\n%s", c.want, text.String())
			}
			t.Log(text.String())
		})
	}
}
