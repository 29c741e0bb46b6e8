package place

import (
	"path"
	"slices"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
)

// What new contenders of this process do about places that are kept: by this process, in their own way
// or at the limit of session.WithMaxNodes, or by other processes.

// yield gives up the places that this process keeps at the queue's path and that would block a new
// contender for a request. Their watches would tell as much, a round trip later.
func (q *Queue) yield(s *core.Session, r *Request) {
	for _, t := range held.lazyAt(s, q.dir) {
		if t.blocks(r) {
			t.local.giveUpKept(t, true)
		}
	}
}

// succeeds returns the turn before, which is about to be deleted, if only that is in the way of a place that may be kept. It
// is asked once.
func (a *attempt) succeeds(ahead *decide.Tail) *turn {
	before := a.entry.before
	a.entry.before = nil
	if before != nil && a.entry.lazy && ahead.Count() == 1 && ahead.Last[0].Node.Name == before.node.Name {
		return before
	}
	return nil
}

// inUse reports whether the nodes in the way are known not to be kept places that nobody uses: one does not say that its
// place may be kept, or waits for another of them and so wants the lock, or is held in this session.
func (a *attempt) inUse(ahead *decide.Tail) bool {
	for i, b := range ahead.Last {
		if i > 0 && decide.WaitsFor(a.r.Kind, b.Node, ahead.Last[i-1].Node) {
			return true
		}
		if since, _ := held.look(a.s, path.Join(a.q.dir, b.Node.Name)); !since.IsZero() {
			return true
		}
	}
	return ahead.Firm
}

// lazyAt returns the turns of a session at a path whose places may be kept.
func (h *heldTurns) lazyAt(s *core.Session, dir string) []*turn {
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
		if oldest.local.giveUpKept(oldest, false) != nil { // nil: it was used again, or given up, in the meantime
			some = true
			nodes--
			bytes -= s.NodeBytes(oldest.path, false)
		}
	}
	return some
}

// oldestKept returns the turn of a session that has been kept for longest without a use, or nil.
func (h *heldTurns) oldestKept(s *core.Session) (oldest *turn) {
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
			if since := t.tenure.keptAt.Load(); since != 0 && (oldest == nil || since < first) {
				oldest, first = t, since
			}
		}
	}
	return oldest
}

// addLazy notes that the place of a turn may be kept. h.mu is held.
func (h *heldTurns) addLazy(in *heldIn, t *turn) {
	if t.tenure == nil || !t.tenure.fit {
		return
	}
	dir := path.Dir(t.path)
	in.lazy[dir] = append(in.lazy[dir], t)
	h.lazy.Add(1)
}

// removeLazy undoes addLazy. h.mu is held.
func (h *heldTurns) removeLazy(in *heldIn, t *turn) {
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
