package place

import (
	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/kinds"
)

// What new contenders of this process do about places that are kept: by this process, in their own way
// or at the limit of session.WithMaxNodes, or by other processes.

// yield gives up the places that this process keeps at the queue's path and that would block a new
// contender for a request. Their watches would tell as much, a round trip later.
func (q *Queue) yield(s *core.Session, r *Request) {
	for _, t := range held.lazyAt(s, q.dir) {
		if t.blocks(r) {
			t.by.GiveUpKept(true)
		}
	}
}

// successorOf returns the turn before, which is about to be deleted, if only that is in the way of a place that may be
// kept. It is asked once.
func (a *attempt) successorOf(ahead *decide.Tail) *Turn {
	before := a.entry.Before
	a.entry.Before = nil
	if before != nil && a.entry.Lazy && ahead.Count() == 1 && ahead.Last[0].Node.Name == before.node.Name {
		return before
	}
	return nil
}

// blocks reports whether the node of this turn is in the way of a new contender for a request.
func (t *Turn) blocks(r *Request) bool {
	return decide.BlocksFor(r.Kind, decide.Newcomer(r.Prefix, r.Weight), t.node)
}

// IsShared reports whether contenders of a request can hold at once, one of them behind the other:
// readers.
func (r *Request) IsShared() bool {
	ahead := kinds.Node{Prefix: r.Prefix, Weight: r.Weight, Sequence: 1}
	behind := kinds.Node{Prefix: r.Prefix, Weight: r.Weight, Sequence: 2}
	return !decide.BlocksFor(r.Kind, behind, ahead)
}
