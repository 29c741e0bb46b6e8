package place

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
)

// held has the turns of this process while they last. The end of their session ends them, and the log gets
// one line for all locks that it takes away. Contenders asks held since when a node is held.
var held = heldTurns{sessions: make(map[*core.Session]*heldIn)}

type heldTurns struct {
	lazy atomic.Int64 // how many turns have places that may be kept

	mu       sync.Mutex
	sessions map[*core.Session]*heldIn
}

// heldIn has the turns of one session. It is kept from the first of them until the session has ended
// and the last turn is over.
type heldIn struct {
	log   *slog.Logger
	turns map[string]*Turn   // by the path of the node
	lazy  map[string][]*Turn // those whose places may be kept, by the queue's path
	ended bool               // the session has ended
	lost  int                // holds that ended with the session
	some  []string           // paths of the first locks that were lost
}

// namedLosses is how many of the locks that are lost together the log names.
const namedLosses = 5

// add notes that a turn has begun. The end of its session ends it, also if that has come. The caller calls
// remove when it is over.
func (h *heldTurns) add(t *Turn) {
	s := t.s
	h.mu.Lock()
	defer h.mu.Unlock()
	in := h.sessions[s]
	if in == nil {
		in = &heldIn{
			log: t.q.m.Logger(), turns: make(map[string]*Turn), lazy: make(map[string][]*Turn),
		}
		h.sessions[s] = in
		s.OnShortage(func(nodes, bytes int) bool { return h.spare(s, nodes, bytes) })
		s.AfterEnd(func() { h.end(s) })
	}
	in.turns[t.path] = t
	h.addLazy(in, t)
	if in.ended {
		go t.loseSession()
	}
}

// remove notes that a turn is over, and how many holds the end of the session took away. Further calls
// for the same turn do nothing.
func (h *heldTurns) remove(t *Turn, lost int) {
	s := t.s
	h.mu.Lock()
	in := h.sessions[s]
	if in == nil || in.turns[t.path] != t {
		h.mu.Unlock()
		return
	}
	delete(in.turns, t.path)
	h.removeLazy(in, t)
	if lost > 0 {
		in.lost += lost
		if len(in.some) < namedLosses {
			in.some = append(in.some, t.q.dir)
		}
	}
	over := h.settle(s, in)
	h.mu.Unlock()
	over.report(s)
}

// end ends the turns of a session that has ended.
func (h *heldTurns) end(s *core.Session) {
	h.mu.Lock()
	in := h.sessions[s]
	if in == nil {
		h.mu.Unlock()
		return
	}
	in.ended = true
	turns := slices.Collect(maps.Values(in.turns))
	over := h.settle(s, in)
	h.mu.Unlock()
	over.report(s)
	for _, t := range turns {
		t.loseSession()
	}
}

// loseSession ends the turn because its session has ended.
func (t *Turn) loseSession() { t.lose(t.s.Err()) }

// settle forgets a session that has ended, once no turn is left, and returns what is to be reported
// of it. h.mu is held.
func (h *heldTurns) settle(s *core.Session, in *heldIn) *heldIn {
	if !in.ended || len(in.turns) > 0 {
		return nil
	}
	delete(h.sessions, s)
	return in
}

// report logs the holds that were lost with a session, in one line. A program that closes the manager
// gives its locks up itself, which is no loss.
func (in *heldIn) report(s *core.Session) {
	if in == nil || in.lost == 0 || errors.Is(s.Err(), core.ErrClosed) {
		return
	}
	in.log.Warn("locks lost with their session",
		"holds", in.lost, "locks", in.some, "session", hexID(s), "cause", s.Err())
}

// look returns when the present hold of a node has begun, and whether its place is kept without a hold.
// It returns zero values if this session has no turn by that node.
func (h *heldTurns) look(s *core.Session, node string) (since time.Time, kept bool) {
	h.mu.Lock()
	var t *Turn
	if in := h.sessions[s]; in != nil {
		t = in.turns[node]
	}
	h.mu.Unlock()
	if t == nil {
		return time.Time{}, false
	}
	return t.heldSince(), t.keptAt.Load() != 0
}

// reportDeleted logs that a lock was lost because its node was deleted, and not by us.
func (t *Turn) reportDeleted() {
	t.q.m.Logger().Warn("lock lost: its node was deleted, and not by its holder",
		"lock", t.q.dir, "node", t.path, "session", hexID(t.s))
}

func hexID(s *core.Session) string { return fmt.Sprintf("0x%x", uint64(s.ID())) }

// lazyAt returns the turns of a session at a path whose places may be kept.
func (h *heldTurns) lazyAt(s *core.Session, dir string) []*Turn {
	if h.lazy.Load() == 0 {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	in := h.sessions[s]
	if in == nil {
		return nil
	}
	return slices.Clone(in.lazy[dir])
}

// spare is the function of *core.Session.OnShortage.
func (h *heldTurns) spare(s *core.Session, nodes, bytes int) (some bool) {
	for nodes > 0 || bytes > 0 {
		oldest := h.oldestKept(s)
		if oldest == nil {
			break
		}
		if oldest.by.GiveUpKept(false) { // otherwise it was used again, or given up, in the meantime
			some = true
			nodes--
			bytes -= s.NodeBytes(oldest.path, false)
		}
	}
	return some
}

// oldestKept returns the turn of a session that has been kept for longest without a use, or nil.
func (h *heldTurns) oldestKept(s *core.Session) (oldest *Turn) {
	if h.lazy.Load() == 0 {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	in, first := h.sessions[s], int64(0)
	if in == nil {
		return nil
	}
	for _, turns := range in.lazy {
		for _, t := range turns {
			if since := t.keptAt.Load(); since != 0 && (oldest == nil || since < first) {
				oldest, first = t, since
			}
		}
	}
	return oldest
}

// addLazy notes that the place of a turn may be kept. h.mu is held.
func (h *heldTurns) addLazy(in *heldIn, t *Turn) {
	if !t.lazy {
		return
	}
	dir := path.Dir(t.path)
	in.lazy[dir] = append(in.lazy[dir], t)
	h.lazy.Add(1)
}

// removeLazy undoes addLazy. h.mu is held.
func (h *heldTurns) removeLazy(in *heldIn, t *Turn) {
	dir := path.Dir(t.path)
	turns := in.lazy[dir]
	i := slices.Index(turns, t)
	if i < 0 {
		return
	}
	h.lazy.Add(-1)
	if in.lazy[dir] = slices.Delete(turns, i, i+1); len(turns) == 1 {
		delete(in.lazy, dir)
	}
}
