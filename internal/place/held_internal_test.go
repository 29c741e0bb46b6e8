package place

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Nothing stays of a turn that is over, nor of a session that has ended.
func TestHeldForgets(t *testing.T) {
	p := newProcess(t, testserver.Path(t), Request{})
	s := (*core.Session)(testserver.Session(t, p.m))
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

// A turn that begins after its session has ended is lost at once, whether or not others are still there.
func TestHeldAfterEnd(t *testing.T) {
	p := newProcess(t, testserver.Path(t), Request{})
	l := p.hold(t)
	s := l.t.s
	expect.NoError(t, p.proxy.Expire(expect.Patient(t), s.ID()))
	for what, h := range map[string]*heldTurns{
		"the last was lost": {sessions: make(map[*core.Session]*heldIn)},
		"others are there":  {sessions: map[*core.Session]*heldIn{s: {ended: true, turns: map[string]*Turn{"/other": nil}}}},
	} {
		<-s.Done()
		late := newTurn(t.Context(), &attempt{place: &place{q: l.t.q, s: s, r: l.t.r, path: l.t.path}}, nil)
		h.add(late)
		zktest.Eventually(t, testserver.Patience, "the end of the turn when "+what, func() bool { return late.ended() != nil })
	}
}

// The line about a session waits for its last turn, in whatever order the news of the end comes.
func TestHeldReportsOnce(t *testing.T) {
	var log bytes.Buffer
	p := newProcess(t, testserver.Path(t), Request{})
	other := newProcess(t, testserver.Path(t), Request{}, session.WithLogger(slog.New(slog.DiscardHandler)))
	s := (*core.Session)(testserver.Session(t, p.m))
	first, second := p.hold(t), other.hold(t)
	// Two turns of one session.
	turns := []*Turn{first.t, {place: &place{s: s, q: first.t.q, path: second.t.path}}}
	h := heldTurns{sessions: make(map[*core.Session]*heldIn)}
	for _, turn := range turns {
		h.add(turn)
	}
	h.sessions[s].log = slog.New(slog.NewTextHandler(&log, nil))
	h.remove(turns[0], 1)
	h.mu.Lock()
	h.sessions[s].ended = true
	h.mu.Unlock()
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
