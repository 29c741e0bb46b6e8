package session_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

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
	e := zktest.StartReal(t, zktest.Nodes(3), zktest.Property("maxClientCnxns", "4"))
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

// With readonlymode.enabled, a server without a quorum serves read-only clients, and hangs up on others.
func TestLogOfAReadOnlyServer(t *testing.T) {
	longtest.Only(t)
	e := zktest.StartReal(t, zktest.Nodes(3), zktest.ReadOnlyMode())
	must(t, e.WaitReady(patient(t)))
	must(t, e.Stop(1))
	must(t, e.Stop(2))
	zktest.Eventually(t, testserver.Patience, "a server that is read-only", func() bool {
		text, err := e.Word(patient(t), 0, "isro")
		return err == nil && text == "ro"
	})
	// On a busy machine the first attempt can take longer, and the error does not tell why it failed.
	patience := time.Second
	zktest.Eventually(t, testserver.Patience, "an error that says that the server is read-only", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		patience *= 2
		_, err := session.Connect(ctx, e.Addr(0), quiet)
		if err == nil {
			t.Fatal("a session of a server that is read-only")
		}
		t.Log(err)
		return strings.Contains(err.Error(), "read-only for want of one")
	})
}

// A server that is stopped under a session: the log says where the session was, and where it is now.
func TestLogOfAServerStopped(t *testing.T) {
	longtest.Only(t)
	e := zktest.StartReal(t, zktest.Nodes(3))
	must(t, e.WaitReady(patient(t)))
	var text logText
	m := testserver.Connect(t, e.ConnectString(), session.WithTimeout(time.Minute),
		session.WithLogger(slog.New(slog.NewTextHandler(&text, nil))))
	testserver.Session(t, m)
	zktest.Eventually(t, testserver.Patience, "a line about the first server", func() bool {
		return strings.Contains(text.String(), "zookeeper session opened")
	})
	for i := range 3 {
		if strings.Contains(text.String(), "server="+e.Addr(i)) {
			must(t, e.Stop(i))
			break
		}
	}
	zktest.Eventually(t, testserver.Patience, "a line about the next server", func() bool {
		return strings.Contains(text.String(), "zookeeper session reconnected")
	})
	if !strings.Contains(text.String(), `cause="the server closed the connection"`) &&
		!strings.Contains(text.String(), `cause="connection reset by peer"`) {
		t.Errorf("no cause in\n%s", text.String())
	}
	t.Log(text.String())
}
