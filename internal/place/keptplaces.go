package place

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/turnstile-go/turnstile/internal/core"
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

// follows reports whether only the node of the turn before, which is about to be deleted, is in the way
// of a place that may be kept.
func (a *attempt) follows(ahead *tail) bool {
	before := a.entry.before
	return before != nil && a.entry.lazy && ahead.count() == 1 && ahead.last[0].node.Name == before.node.Name
}

// succession waits until the node of the turn before is gone, and returns a new listing. A watch on that
// node would tell as early, but without a listing the place could not be kept.
func (a *attempt) succession(ctx context.Context) ([]string, error) {
	a.entry.before.awaitGone(ctx)
	a.entry.before = nil
	return a.list(ctx)
}

// outlast waits, in a try, for nodes in the way that may be kept places. If nobody uses those places, they
// are given up as soon as their owners are told of our node. Places in use are given up at their release. It returns
// ErrBusy if they stand for longer than leavingTime, or at once if the lock is in use.
func (a *attempt) outlast(ctx context.Context, ahead *tail) error {
	limited, cancel := context.WithTimeout(ctx, leavingTime(a.entering))
	defer cancel()
	err := a.outlastUntil(limited, ahead)
	if err != nil && limited.Err() != nil && ctx.Err() == nil && errors.Is(err, limited.Err()) {
		return ErrBusy
	}
	return err
}

func (a *attempt) outlastUntil(ctx context.Context, ahead *tail) error {
	for !a.inUse(ahead) {
		if granted, err := a.waitAtOnce(ctx, ahead); granted || err != nil {
			return err
		}
		if err := a.slow(ctx, false); err != nil {
			return err
		}
		names, err := a.list(ctx)
		if err != nil {
			return err
		}
		if ahead, err = a.decide(ctx, names); err != nil {
			return err
		}
		if ahead.mayGo() {
			return nil
		}
	}
	return ErrBusy
}

// inUse reports whether the nodes in the way are known not to be kept places that nobody uses: one does not say that its
// place may be kept, or waits for another of them and so wants the lock, or is held in this session.
func (a *attempt) inUse(ahead *tail) bool {
	for i, b := range ahead.last {
		if i > 0 && waitsFor(a.r.Kind, b.node, ahead.last[i-1].node) {
			return true
		}
		if since, _ := held.look(a.s, path.Join(a.q.dir, b.node.Name)); !since.IsZero() {
			return true
		}
	}
	return ahead.firm
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
