package placemodel

import (
	"slices"

	"github.com/turnstile-go/turnstile/internal/decide"
)

// The promises of docs/places.md.

// checkGrant checks, when a lease begins, that nobody else holds what excludes it, and that its node stands
// as far as the servers have told. A holder does not count whose node an operator has deleted: nobody can
// tell it in time.
func (r *run) checkGrant(i int8) {
	w, a := r.world, &r.world.attempts[i]
	if r.waited && a.state == decide.Holding && r.seen(a.client, a.dir)>>a.node&1 == 0 {
		r.fail("%s is granted after a wait, and its server has told it that its node is gone",
			r.title(a.node))
	}
	if w.nodes[a.node].operated {
		return
	}
	sum := 0
	for j := range int8(maxAttempts) {
		b := &w.attempts[j]
		if !b.used || b.dir != a.dir || b.state != decide.Holding || w.nodes[b.node].operated {
			continue
		}
		sum += r.sorts[b.sort].weight
		if j != i && b.call == a.call && a.call != none {
			sum -= r.sorts[b.sort].weight // a downgrade
			continue
		}
		if j != i && len(r.configs) == 0 && !(r.sorts[a.sort].shared && r.sorts[b.sort].shared) {
			r.fail("%s and %s hold at once", r.title(b.node), r.title(a.node))
		}
	}
	if len(r.configs) == 0 {
		return
	}
	// A server that lags knows a limit that is not in force any more.
	if most := slices.Max(r.limits[a.era : w.era+1]); sum > most {
		r.fail("%d leases are held, and the limit has been %d since that by which %s was let in", sum,
			most, r.title(a.node))
	}
}

// checkKept checks that a kept place is used only while nobody is there that waits for it, as far as the
// servers have told.
func (r *run) checkKept(i int8) {
	a := &r.world.attempts[i]
	in := r.seen(a.client, a.dir)
	if in>>a.node&1 == 0 {
		r.fail("%s uses a kept place, and its server has told it that the node is gone", r.of(a.client))
	}
	kind := r.sorts[a.sort].kind
	for j := range int8(maxNodes) {
		if n := &r.world.nodes[j]; n.client == a.client && n.id == a.id {
			continue // a twin waits for nothing
		}
		if in>>j&1 == 1 && decide.WaitsFor(kind, r.nodeOf(&r.world.nodes[j]),
			r.nodeOf(&r.world.nodes[a.node])) {
			r.fail("%s uses a kept place, and its server has told it of %s, which waits for it",
				r.of(a.client), r.title(j))
		}
	}
}

// check checks what must be true in every state: each holder has its node, and each node has somebody who
// will delete it.
func (r *run) check() {
	w := r.world
	for i := range w.attempts {
		a := &w.attempts[i]
		if !a.used || a.state != decide.Holding {
			continue
		}
		if n := &w.nodes[a.node]; n.gone && !n.operated || n.leaving != stays {
			r.fail("%s is held, and the node is gone or is going", r.title(a.node))
		}
	}
	for i := range int8(maxNodes) {
		if n := &w.nodes[i]; n.used && !n.gone && !n.old && n.leaving == stays && !w.owned(i) {
			r.fail("%s has no owner: nobody will delete it before its session ends", r.title(i))
		}
	}
}

// owned reports whether an attempt or a sweep goes with a node.
func (w *world) owned(i int8) bool {
	n := &w.nodes[i]
	for j := range w.attempts {
		a := &w.attempts[j]
		if a.used && a.client == n.client && a.id == n.id && a.state != decide.Left && (a.node == i ||
			a.doubt || a.stage == answering) {
			return true
		}
	}
	for j := range w.sweeps {
		if s := &w.sweeps[j]; s.used && s.client == n.client && s.id == n.id {
			return true
		}
	}
	return false
}

// served reports whether all callers have got what they want, or have given up.
func (m *model) served(w *world) bool {
	for i := range m.programs {
		if w.calls[i].phase != done {
			return false
		}
	}
	return true
}

// empty reports whether no node is left.
func (w *world) empty() bool {
	for i := range w.nodes {
		if n := &w.nodes[i]; n.used && !n.gone {
			return false
		}
	}
	return true
}
