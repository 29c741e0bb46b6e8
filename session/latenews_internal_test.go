package session

import (
	"testing"
	"testing/synctest"
	"time"
)

// The goroutine of a connection can get no processor for so long that the manager goes on without it. What it tells then of a
// session that has ended does not take the place of the next session.
func TestLateNewsOfEndedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := unwatched(t, 10*time.Second)
		m := old.m
		m.changed = make(chan struct{})
		_ = old.mark(ErrLost)
		m.transition(Connected, old, nil)
		if state := m.State(); state != Connecting {
			t.Errorf("%v, by the connection of a session that has ended", state)
		}
		next := newSession(m)
		if err := greet(next, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		m.transition(Connected, next, nil)
		m.transition(Suspended, old, nil)
		if s, err := m.Session(t.Context()); s != next || m.State() != Connected {
			t.Errorf("%p, %v, want %p; %v", s, err, next, m.State())
		}
		m.shut()
	})
}
