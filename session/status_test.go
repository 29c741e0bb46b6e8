package session_test

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Status tells what the manager knows, before, during and after an outage.
func TestStatus(t *testing.T) {
	const timeout = 20 * time.Second
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(timeout))
	s := testserver.Session(t, m)
	want := session.Status{State: session.Connected, Servers: proxy.Addr(), Session: s, Timeout: timeout, Server: proxy.Addr()}
	if got := m.Status(); got != want {
		t.Errorf("connected: %+v, want %+v", got, want)
	}
	proxy.Refuse(true)
	proxy.Disconnect()
	var got session.Status
	zktest.Eventually(t, testserver.Patience, "the reason of the outage", func() bool {
		got = m.Status()
		return got.State == session.Suspended && got.Failure != nil
	})
	want.State, want.Failure = session.Suspended, got.Failure
	if got != want {
		t.Errorf("suspended: %+v, want %+v", got, want)
	}
	proxy.Refuse(false)
	zktest.Eventually(t, testserver.Patience, "a connection", func() bool { return m.State() == session.Connected })
	if got := m.Status(); got.Failure != nil || got.Session != s {
		t.Errorf("connected again: %+v", got)
	}
	_ = m.Close()
	if got, want := m.Status(), (session.Status{State: session.Closed, Servers: proxy.Addr(), Timeout: timeout}); got != want {
		t.Errorf("closed: %+v, want %+v", got, want)
	}
}

// A server that accepts connections and does not answer is named.
func TestStatusOfSilence(t *testing.T) {
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(20*time.Second))
	s := testserver.Session(t, m)
	proxy.Blackhole(zktest.ToClient)
	defer proxy.Heal() // or else Close waits for the server
	go func() { _ = s.Sync(t.Context(), "/") }()
	zktest.Eventually(t, testserver.Patience, "the silence", func() bool { return m.Status().Failure != nil })
	if got := m.Status(); got.State != session.Connected || got.Session != s {
		t.Errorf("%+v", got)
	}
}
