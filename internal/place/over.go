package place

import (
	"context"
	"errors"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
)

// lose ends the turn and its present hold by a loss. A turn that nobody holds is simply over.
func (t *Turn) lose(cause error) {
	first := t.conclude(decide.Lost, cause)
	loss, deleted := t.lossOf(cause), errors.Is(cause, errDeleted)
	lost, withSession := 0, 0
	for _, l := range t.present() {
		if l.finish(loss) {
			lost++
			l.tell(loss)
		}
		if l.lostWithSession() {
			withSession++
		}
	}
	if first && deleted {
		// The node is gone. But the session counts it (WithMaxNodes) until a delete of ours
		// has found that.
		t.remove(t.ctx, t.s.Remove)
	}
	if t.by != nil {
		t.by.TurnOver()
	}
	if lost > 0 && deleted {
		t.reportDeleted()
	}
	held.remove(t, withSession)
}

// loseNode ends the turn because its node was deleted. If the holder has released its lease, the
// delete was ours, and loseNode changes nothing.
func (t *Turn) loseNode() { t.lose(fmt.Errorf("%w: %w", core.ErrLost, errDeleted)) }

// release follows the release of a lease. It returns the removal of the node, or nil if the lock
// was handed over or its place is kept.
//
// When waiters of the sharer remain, the node is deleted after their next contender has its place
// in the queue. So no contender that enters after the delete gets ahead of them. Otherwise it is
// deleted with the nodes of the other leases that are released together.
func (t *Turn) release(ctx context.Context, l *Lease, end End, with *parting) *core.Removal {
	t.drop(l)
	if t.by == nil {
		return t.retire(ctx, with.remover(t.s))
	}
	if t.by.PassOn(end) {
		return nil
	}
	if placed := t.by.TurnOver(); placed != nil {
		return t.retire(ctx, func(ctx context.Context, path string) *core.Removal {
			return t.s.RemoveAfter(ctx, path, placed)
		})
	}
	return t.retire(ctx, with.remover(t.s))
}

// GiveUp gives up a place that was kept, after Forgo. It does nothing if t is nil.
func (t *Turn) GiveUp() {
	if t == nil {
		return
	}
	t.retire(t.ctx, t.s.Remove)
}

// retire ends the turn after the last release, and has the node deleted.
func (t *Turn) retire(ctx context.Context, by remover) *core.Removal {
	t.conclude(decide.Quit, ErrReleased)
	held.remove(t, 0)
	return t.remove(ctx, by)
}

// remove has the node deleted. ctx is for hooks alone. Further calls return the first removal.
func (t *Turn) remove(ctx context.Context, by remover) *core.Removal {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.removal == nil {
		t.removal = t.removeBy(ctx, by)
	}
	return t.removal
}
