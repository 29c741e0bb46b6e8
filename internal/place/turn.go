package place

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/internal/news"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// turn is a granted node, from the grant until the node is given up or lost. It is held by one
// lease at a time, or kept while nobody holds it. The package documentation has a diagram.
type turn struct {
	*place                 // only its watch changes any more
	local  *Local          // nil for a turn of a single lease
	ctx    context.Context // the values of the acquisition's context, for hooks; never ends

	known    news.News // that token or tokenErr is set, which then never change
	token    int64
	tokenErr error

	pace *rounds.Pace // of watchOwn, which runs once at a time; nil until it is needed

	tenure *tenure // of a Local; otherwise nil

	// The place's mu guards the rest, and own.
	removal *core.Removal // of the node; nil until it has begun
	holders []*Lease      // the leases that have begun and have not ended
	asked   bool          // the holder was asked to give the lock up

	// Of guard and of what it starts, which set them while the turn lasts.
	delay        *time.Timer // sets the first watch; nil once that was done
	stopNode     func()
	stopChildren func()
}

// newTurn returns the turn of an attempt that was granted. The caller calls guard and then begin.
func newTurn(ctx context.Context, a *attempt, local *Local) *turn {
	t := &turn{place: a.place, local: local, ctx: holderContext(ctx, a.q.hooks())}
	if local != nil {
		t.tenure = newTenure(a, time.Now())
	}
	if a.seat.known {
		t.token, t.tokenErr = a.seat.token, a.seat.tokenErr
		t.known.Tell()
	}
	return t
}

// info says for hooks what is held.
func (t *turn) info() hooks.HoldInfo {
	return hooks.HoldInfo{Kind: t.r.Kind.Name, Chroot: t.q.m.Chroot(), Path: t.q.dir, Node: t.path}
}

func (t *turn) hooks() *hooks.Trace { return t.q.hooks() }

// begin begins a hold. ctx is that of the caller that gets the lease. The previous hold has ended.
func (t *turn) begin(ctx context.Context) *Lease {
	l := newLease(ctx, t)
	// The hook gets the lease, which can end before the hook returns. Then a Local hands the turn
	// over, and the next hold begins. So the turn has to know of this hold before the hook.
	t.mu.Lock()
	t.holders = append(t.holders, l)
	asked := t.asked
	t.mu.Unlock()
	l.began()
	if asked {
		go t.r.Revoked(l)
	}
	if cause := t.ended(); cause != nil {
		t.lose(cause) // again: the first call has not found this holder
	}
	return l
}

// lose ends the turn and its present hold by a loss. A turn that nobody holds is simply over.
func (t *turn) lose(cause error) {
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
	if t.local != nil {
		t.local.turnOver(t)
	}
	if lost > 0 && deleted {
		t.reportDeleted()
	}
	held.remove(t, withSession)
}

// present returns the leases that have begun and were not released.
func (t *turn) present() []*Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.holders)
}

// drop takes note that a lease was released.
func (t *turn) drop(l *Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.holders, l); i >= 0 {
		t.holders = slices.Delete(t.holders, i, i+1)
	}
}

// lossOf returns a cause with the path of the lock that was lost.
func (t *turn) lossOf(cause error) error { return Failed("lock", t.q.dir, cause) }

// loseNode ends the turn because its node was deleted. If the holder has released its lease, the
// delete was ours, and loseNode changes nothing.
func (t *turn) loseNode() { t.lose(fmt.Errorf("%w: %w", core.ErrLost, errDeleted)) }

// release follows the release of a lease. It returns the removal of the node, or nil if the lock
// was handed over or its place is kept.
//
// When waiters of the Local remain, the node is deleted after their next contender has its place
// in the queue. So no contender that enters after the delete gets ahead of them. Otherwise it is
// deleted with the nodes of the other leases that are released together.
func (t *turn) release(ctx context.Context, l *Lease, end End, with *parting) *core.Removal {
	t.drop(l)
	if t.local == nil {
		return t.retire(ctx, with.remover(t.s))
	}
	if t.local.passOn(t, end) {
		return nil
	}
	if placed := t.local.turnOver(t); placed != nil {
		return t.retire(ctx, func(ctx context.Context, path string) *core.Removal {
			return t.s.RemoveAfter(ctx, path, placed)
		})
	}
	return t.retire(ctx, with.remover(t.s))
}

// giveUp gives up a place that was kept, and that its Local has left. It does nothing if t is nil.
func (t *turn) giveUp() {
	if t == nil {
		return
	}
	t.retire(t.ctx, t.s.Remove)
}

// retire ends the turn after the last release, and has the node deleted.
func (t *turn) retire(ctx context.Context, by remover) *core.Removal {
	t.conclude(decide.Quit, ErrReleased)
	held.remove(t, 0)
	return t.remove(ctx, by)
}

// remove has the node deleted. ctx is for hooks alone. Further calls return the first removal.
func (t *turn) remove(ctx context.Context, by remover) *core.Removal {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.removal == nil {
		t.removal = t.removeBy(ctx, by)
	}
	return t.removal
}

// removed returns a channel that is closed once our delete of the node was answered. It is closed already if there was none.
func (t *turn) removed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.removal == nil {
		return closed
	}
	return t.removal.Done()
}

// closed is a channel that is closed.
var closed = func() <-chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

// heldSince returns when the present hold has begun, the first of several. It returns the zero time if
// there is none.
func (t *turn) heldSince() time.Time {
	for _, l := range t.present() {
		if l.hold.Err() == nil {
			return l.since
		}
	}
	return time.Time{}
}

// stands reports whether the node is ours for certain, as far as this process knows.
func (t *turn) stands() bool {
	return !t.deleted() && t.ended() == nil && t.s.Err() == nil // in this order: the clock comes last
}

// ended returns why the turn is over, or nil while it lasts.
func (t *turn) ended() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}

// deleted reports whether the watch on the node has told that the node was deleted.
func (t *turn) deleted() bool {
	t.mu.Lock()
	own := t.own
	t.mu.Unlock()
	return own != nil && own.Event() == core.WatchDeleted
}
