package queue

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// turns has the turns of this process while they last. The end of their session ends them, and the log gets one line for
// all locks that it takes away. Contenders asks it since when a node of ours is held.
var turns = turnTable{sessions: make(map[*session.Session]*sessionTurns)}

type turnTable struct {
	mu       sync.Mutex
	sessions map[*session.Session]*sessionTurns
}

// sessionTurns has the turns of one session. It is kept from the first of them until the last is over, or for as long as
// the session if that ends first.
type sessionTurns struct {
	turns map[string]*Turn // by the path of the node
	stop  func() bool      // cancels what follows the end of the session
	ended bool             // the session has ended
	lost  int              // holds that ended with the session
	some  []string         // paths of the first locks that were lost
}

// namedLosses is how many of the locks that are lost together the log names.
const namedLosses = 5

// add notes that a turn has begun. The end of its session ends it, also if that has come. The turn calls remove when it is
// over.
func (h *turnTable) add(t *Turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	in := h.sessions[t.s]
	if in == nil {
		in = &sessionTurns{turns: make(map[string]*Turn)}
		in.stop = t.s.AfterEnd(func() { h.end(t.s) })
		h.sessions[t.s] = in
	}
	in.turns[t.node.Path] = t
	if in.ended {
		go t.lose(t.s.Err())
	}
}

// remove notes that a turn is over, and how many of its holds the end of the session took away. The last turn tells the log.
func (h *turnTable) remove(t *Turn, lost int) {
	h.mu.Lock()
	in := h.sessions[t.s]
	delete(in.turns, t.node.Path)
	if in.lost += lost; lost > 0 && len(in.some) < namedLosses {
		in.some = append(in.some, t.q.dir)
	}
	last := len(in.turns) == 0
	if last {
		delete(h.sessions, t.s)
		in.stop()
	}
	h.mu.Unlock()
	// A program that closes the manager gives its locks up itself, which is no loss.
	if cause := t.s.Err(); last && in.lost > 0 && !errors.Is(cause, session.ErrClosed) {
		t.q.m.Logger().Warn("locks lost with their session",
			"holds", in.lost, "locks", in.some, "session", hexID(t.s), "cause", cause)
	}
}

// end ends the turns of a session that has ended.
func (h *turnTable) end(s *session.Session) {
	var all []*Turn
	h.mu.Lock()
	if in := h.sessions[s]; in != nil {
		in.ended = true
		all = slices.Collect(maps.Values(in.turns))
	}
	h.mu.Unlock()
	for _, t := range all {
		t.lose(s.Err())
	}
}

// lookUp returns when the present hold of a node has begun, and whether its place is kept without a hold. It returns zero
// values if this session has no turn by that node.
func (h *turnTable) lookUp(s *session.Session, node string) (since time.Time, kept bool) {
	h.mu.Lock()
	in := h.sessions[s]
	if in == nil || in.turns[node] == nil {
		h.mu.Unlock()
		return time.Time{}, false
	}
	t := in.turns[node]
	h.mu.Unlock()
	return t.heldSince()
}

func hexID(s *session.Session) string { return fmt.Sprintf("0x%x", uint64(s.ID())) }
