package place

import (
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/kinds"
)

// What the sharer of a turn does with it. It has a mutex of its own, so that each of these is done once.

// Timeout returns that of the session.
func (t *Turn) Timeout() time.Duration { return t.s.Timeout() }

// Use grants a further lease. It returns false if the turn is over.
func (t *Turn) Use() bool {
	if _, ok := t.step(decide.Used); !ok {
		return false
	}
	t.keptAt.Store(0)
	return true
}

// Pass grants a lease in place of one that was released. It returns false if the turn is over.
func (t *Turn) Pass() bool {
	_, ok := t.step(decide.Passed)
	return ok
}

// Keep begins to keep the place. It returns false if the turn is over.
func (t *Turn) Keep(now time.Time) bool {
	_, ok := t.step(decide.Kept)
	if ok {
		t.keptAt.Store(now.UnixNano())
	}
	return ok
}

// Kept reports whether the place is kept.
func (t *Turn) Kept() bool { return t.is() == decide.Keeping }

// Forgo says that the place, which is kept, is about to be given up. Nobody can use it again.
func (t *Turn) Forgo() {
	t.s.Leaving(t.path) // first, so that the place is at all times known to be kept, or to leave
	t.keptAt.Store(0)
}

// maxCrowd is how many contenders there may be for readers to set the watch on the children again. Each
// contender that comes or leaves makes each of them list.
const maxCrowd = 16

// LookAround lists the directory, and sets a watch on the children in the same request. It returns nil if that has
// failed. alone says that the listing shows our node, and no contender that has to wait for it. A directory with
// more than maxCrowd contenders is too long to be listed again and again, and alone is false.
func (t *Turn) LookAround() (children *core.Watch, alone bool) {
	names, _, w, err := t.s.List(t.during(&t.stopChildren), t.q.dir)
	if err != nil {
		return nil, false
	}
	return w, t.aloneIn(names)
}

// aloneIn reports whether the names of a listing have our node, and no contender that has to wait for it.
func (t *Turn) aloneIn(names []string) bool {
	kind := t.r.Kind
	nodes, err := ofKind(decide.ParseNodes(names, kind.Prefixes...), kind)
	return err == nil && len(nodes) <= maxCrowd && slices.Contains(names, t.node.Name) &&
		!decide.KeepsWaiting(kind, t.node, nodes)
}

// Holder describes the contender that holds the turn, which is one of this process.
func (t *Turn) Holder() kinds.Contender {
	return kinds.Contender{
		Path: t.path, Sequence: t.node.Sequence, Session: t.s.ID(), Holder: true, Own: true, HeldSince: t.heldSince(),
	}
}
