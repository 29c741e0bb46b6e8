package queue

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Nothing stays of a turn that is over, nor of a session that has ended.
func TestHeldForgets(t *testing.T) {
	p := newProcess(t, testserver.Path(t), Request{}, 1)
	s := testserver.Session(t, p.m)
	turns := func() int {
		held.mu.Lock()
		defer held.mu.Unlock()
		in := held.sessions[s]
		if in == nil {
			return -1
		}
		return len(in.turns)
	}
	for range 3 {
		l := p.hold(t)
		if turns() != 1 {
			t.Errorf("%d turns while one lasts", turns())
		}
		giveBack(t, l)
		if turns() != 0 {
			t.Errorf("%d turns after the release", turns())
		}
	}
	lost := p.hold(t)
	testserver.Delete(t, lost.Path())
	lostBy(t, lost)
	zktest.Eventually(t, testserver.Patience, "the turn to be forgotten", func() bool { return turns() == 0 })
	p.hold(t)
	if err := p.m.Close(); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, testserver.Patience, "the session to be forgotten", func() bool { return turns() == -1 })
}

// The line about a session waits for its last turn, in whatever order the news of the end comes.
func TestHeldReportsOnce(t *testing.T) {
	var log bytes.Buffer
	p := newProcess(t, testserver.Path(t), Request{}, 1)
	other := newProcess(t, testserver.Path(t), Request{}, 1, session.WithLogger(slog.New(slog.DiscardHandler)))
	s := testserver.Session(t, p.m)
	first, second := p.hold(t), other.hold(t)
	// Two turns of one session.
	turns := []*turn{first.t, {a: &attempt{s: s, q: first.t.a.q}, info: second.t.info}}
	h := heldTurns{sessions: make(map[*session.Session]*heldIn)}
	for _, turn := range turns {
		h.add(turn)
	}
	h.sessions[s].log = slog.New(slog.NewTextHandler(&log, nil))
	h.remove(turns[0], 1)
	h.end(s)
	if log.Len() > 0 {
		t.Errorf("while a turn lasts: %s", &log)
	}
	h.remove(turns[1], 1)
	h.remove(turns[1], 1) // again
	if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "holds=2 ") || len(h.sessions) > 0 {
		t.Errorf("%s; %d sessions left", &log, len(h.sessions))
	}
	giveBack(t, first)
	giveBack(t, second)
}
