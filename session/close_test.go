package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestClose(t *testing.T) {
	_, m, s := behindProxy(t, 20*time.Second)
	d := ephemeral(t, s)
	var h history
	m.Subscribe(h.add)
	must(t, m.Close())
	must(t, m.Close())
	if names := testserver.Children(t, d); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
	wantErr(t, "session", s.Err(), session.ErrClosed)
	within(t, s.Done(), "Done")
	if m.State() != session.Closed {
		t.Errorf("state %v", m.State())
	}
	_, err := m.Session(patient(t))
	wantErr(t, "Session", err, session.ErrClosed)
	_, _, err = s.Get(patient(t), "/")
	wantErr(t, "a request", err, session.ErrClosed)
	h.wait(t, session.Connected, session.Closed)
	var late history
	m.Subscribe(late.add)
	late.wait(t, session.Closed)
}

// Close ends the calls that wait for a connection or for a session.
func TestCloseEndsWaiting(t *testing.T) {
	longtest.Only(t)
	p, m, s := behindProxy(t, 10*time.Second)
	var h history
	m.Subscribe(h.add)
	p.Refuse(true)
	p.Disconnect()
	h.wait(t, session.Connected, session.Suspended)
	results := make(chan error, 2)
	go func() { _, _, err := s.Get(context.Background(), "/"); results <- err }()
	r := s.Remove(t.Context(), "/none")
	go func() { <-r.Done(); results <- r.Err() }()
	_ = m.Close()
	for range 2 {
		wantErr(t, "who waited", within(t, results, "the end"), session.ErrClosed)
	}
}

// If no server can be reached, Close gives up after its limit and returns an error.
func TestCloseIsBounded(t *testing.T) {
	longtest.Only(t)
	p, m, s := behindProxy(t, 10*time.Second)
	d := ephemeral(t, s)
	p.Blackhole(zktest.Both)
	result := make(chan error, 1)
	go func() { result <- m.Close() }()
	if err := within(t, result, "Close"); err == nil {
		t.Error("closed without the server knowing, and no error")
	}
	p.Heal()
	testserver.WaitChildren(t, d, 0)
}
