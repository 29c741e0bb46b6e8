package queue

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// turns has the turns of this process, so that the log gets one line for all locks that are lost with a session, and
// [Queue.Contenders] knows since when a node of ours is held.
var turns = turnTable{sessions: make(map[*session.Session]map[string]*Turn)}

const namedLosses = 5 // locks that the log names

type turnTable struct {
	mu       sync.Mutex
	sessions map[*session.Session]map[string]*Turn // by path; from a session's first turn to its end
}

// add notes that a turn has begun. The end of its session ends it, also if that has come.
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

// remove notes that a turn is over whose session may go on.
func (h *turnTable) remove(t *Turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := h.sessions[t.s]
	if delete(of, t.node.Path); of != nil && len(of) == 0 {
		h.sessions[t.s] = nil // a map does not shrink; the entry says that AfterEnd was called
	}
}

// end ends the turns of a session that has ended, and tells the log.
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
	if holds > 0 && !errors.Is(cause, session.ErrClosed) { // a program that closes the manager gives its locks up itself
		log.Warn("locks lost with their session", "holds", holds, "locks", locks, "session", hexID(s), "cause", cause)
	}
}

// lookUp returns when the present hold of a node of ours has begun, and whether its place is kept without a hold.
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
