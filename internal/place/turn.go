package place

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/internal/news"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// Turn is a granted node, from the grant until the node is given up or lost. It is held by one
// lease at a time, or by several that share it, or kept while nobody holds it.
type Turn struct {
	*place                 // only its watch changes any more
	by     Sharer          // nil for a turn of a single lease
	ctx    context.Context // the values of the acquisition's context, for hooks; never ends

	keptAt atomic.Int64 // since when nobody holds the node (UnixNano), or 0

	known    news.News // that token or tokenErr is set, which then never change
	token    int64
	tokenErr error

	pace *rounds.Pace // of watchOwn, which runs once at a time; nil until it is needed

	// The place's mu guards the rest, and own.
	cause   error         // why the turn is over; nil while it lasts
	removal *core.Removal // of the node; nil until it has begun
	holders []*Lease      // the leases that have begun and have not ended
	asked   bool          // the holder was asked to give the lock up
	lazy    bool          // the place may be kept; never changes

	// Of Guard and of what it starts, which set them while the turn lasts.
	delay        *time.Timer // sets the first watch; nil once that was done
	stopNode     func()
	stopChildren func()
}

// Sharer has the leases of a turn follow each other, or hold at once.
type Sharer interface {
	// PassOn follows the release of a lease. It returns false if the turn has to end.
	PassOn(end End) bool
	// TurnOver follows the end of the turn. If others wait, it returns a channel that is closed when they have a place.
	TurnOver() (placed <-chan struct{})
	// MakeLast makes the present hold the last one of the turn.
	MakeLast()
	// Intrude follows the end of the watch w on the children.
	Intrude(w *core.Watch)
	// GiveUpKept gives up the place of the turn if it is kept, and reports whether it was. taken says that another
	// contender wants it.
	GiveUpKept(taken bool) bool
}

// newTurn returns the turn of an attempt that was granted. The caller calls Guard and then Begin.
func newTurn(ctx context.Context, a *attempt, by Sharer) *Turn {
	t := &Turn{place: a.place, by: by, ctx: holderContext(ctx, a.q.hooks()), lazy: a.mayBeKept()}
	if s := a.seat; s != nil {
		t.token, t.tokenErr = s.token, s.tokenErr
		t.known.Tell()
	}
	return t
}

// info says for hooks what is held, without what differs between the leases of the turn.
func (t *Turn) info() hooks.HoldInfo {
	return hooks.HoldInfo{Kind: t.r.Kind.Name, Name: t.r.Name, Chroot: t.q.m.Chroot(), Path: t.q.dir, Node: t.path}
}

func (t *Turn) hooks() *hooks.Trace { return t.q.hooks() }

// present returns the leases that have begun and were not released.
func (t *Turn) present() []*Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.holders)
}

// drop takes note that a lease was released.
func (t *Turn) drop(l *Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.holders, l); i >= 0 {
		t.holders = slices.Delete(t.holders, i, i+1)
	}
}

// removed returns a channel that is closed once our delete of the node was answered. It is closed already if there was
// none.
func (t *Turn) removed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.removal == nil {
		return closed
	}
	return t.removal.Done()
}

// heldSince returns when the present hold has begun, the first of several. It returns the zero time if
// there is none.
func (t *Turn) heldSince() time.Time {
	for _, l := range t.present() {
		if l.hold.Err() == nil {
			return l.since
		}
	}
	return time.Time{}
}

// Stands reports whether the node is ours for certain, as far as this process knows.
func (t *Turn) Stands() bool {
	return !t.Deleted() && t.ended() == nil && t.s.Err() == nil // in this order: the clock comes last
}

// ended returns why the turn is over, or nil while it lasts.
func (t *Turn) ended() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}

// Deleted reports whether the watch on the node has told that the node was deleted.
func (t *Turn) Deleted() bool {
	t.mu.Lock()
	own := t.own
	t.mu.Unlock()
	return own != nil && own.Event() == core.WatchDeleted
}

// conclude ends the turn, by Lost or Quit, and stops guarding it. It reports whether this was the first call.
func (t *Turn) conclude(by decide.Input, cause error) (first bool) {
	t.mu.Lock()
	if _, first = t.stepLocked(by); first {
		t.cause = cause
	}
	stops := []func(){t.stopNode, t.stopChildren}
	t.stopNode, t.stopChildren = nil, nil
	t.mu.Unlock()
	for _, stop := range stops {
		if stop != nil {
			stop()
		}
	}
	return first
}

// lossOf returns a cause with the path of the lock that was lost.
func (t *Turn) lossOf(cause error) error { return Failed("lock", t.q.dir, cause) }
