package queue

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// turns ends the turns of a session with it, in one log line, and knows HeldSince of [Contender].
var turns = turnTable{sessions: make(map[*session.Session]map[string]*Turn)}

const namedLosses = 5 // that are logged

type turnTable struct {
	mu       sync.Mutex
	sessions map[*session.Session]map[string]*Turn // by path; an entry lasts as long as its session
}

// add has the end of the session end the turn, also if that has come.
func (h *turnTable) add(t *Turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.sessions[t.s]; !known {
		s, log := t.s, t.q.m.Logger()
		s.AfterEnd(func() { h.end(s, log) })
	}
	if h.sessions[t.s] == nil {
		h.sessions[t.s] = make(map[string]*Turn)
	}
	h.sessions[t.s][t.node.Path] = t
}

func (h *turnTable) remove(t *Turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := h.sessions[t.s]
	if delete(of, t.node.Path); of != nil && len(of) == 0 {
		h.sessions[t.s] = nil // a map does not shrink; the entry says that AfterEnd was called
	}
}

func (h *turnTable) end(s *session.Session, log *slog.Logger) {
	h.mu.Lock()
	all := h.sessions[s]
	delete(h.sessions, s)
	h.mu.Unlock()
	holds, locks, cause := 0, []string(nil), s.Err()
	for _, t := range all {
		lost := t.lose(cause)
		if holds += lost; lost > 0 && len(locks) < namedLosses {
			locks = append(locks, t.q.dir)
		}
	}
	if holds > 0 && !errors.Is(cause, session.ErrClosed) {
		log.Warn("locks lost with their session", "holds", holds, "locks", locks, "session", hexID(s), "cause", cause)
	}
}

func (h *turnTable) lookUp(s *session.Session, node string) (since time.Time, kept bool) {
	h.mu.Lock()
	t := h.sessions[s][node]
	h.mu.Unlock()
	if t == nil {
		return time.Time{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.leases); n > 0 {
		return t.leases[n-1].since, false
	}
	return time.Time{}, t.mayKeep && t.over.why() == nil
}

func hexID(s *session.Session) string { return fmt.Sprintf("0x%x", uint64(s.ID())) }
