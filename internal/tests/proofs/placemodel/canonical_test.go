package placemodel

import (
	"cmp"
	"slices"

	"github.com/turnstile-go/turnstile/internal/decide"
)

// canonical brings a world into the form that it has in the set of those that were visited: what nobody can
// tell any more is forgotten, and what differs only in names and numbers becomes equal.
func (m *model) canonical(w *world) {
	w.forget(m)
	w.settleViews(m)
	w.trim(m)
	w.dropWatches()
	w.dropNodes()
	w.sortNodes()
	w.pack()
}

// forget resets what is of no interest to anybody any more.
func (w *world) forget(m *model) {
	for i := range w.attempts {
		a := &w.attempts[i]
		if a.used && a.stage != watches {
			a.config, a.configEra, a.rest = none, 0, 0
			a.wake = false
		}
		a.waited = a.used && (a.waited || !a.lazy) // only places that may be kept need a listing after a wait
		if a.used && a.node != none && a.stage != answering {
			w.nodes[a.node].orphaned = false // the attempt has it
		}
	}
	if len(m.configs) == 0 {
		for i := range w.watches {
			w.watches[i].told = false
		}
	}
	for c := range m.size {
		l := &w.clients[c]
		if l.turn == none {
			l.left, l.fit, l.barred = 0, false, false
		}
		l.came = 0
		for i := range w.calls {
			if w.calls[i].phase == queues && m.programs[i].client == c {
				l.came = max(l.came, w.calls[i].at)
			}
		}
	}
	for i := range w.calls {
		if w.calls[i].phase != queues {
			w.calls[i].at = 0
		}
	}
}

// settleViews has a server catch up whose client could not tell: nothing of the client's is under way that
// the server answers, and no watch is pending.
func (w *world) settleViews(m *model) {
	for c := range int8(m.size) {
		if !w.cares(c) {
			w.clients[c].view = w.length
		}
	}
}

func (w *world) cares(c int8) bool {
	for i := range w.attempts {
		if a := &w.attempts[i]; a.used && a.client == c && a.cares() {
			return true
		}
	}
	return false
}

func (a *attempt) cares() bool {
	if a.stage == acts && a.state == decide.Holding && a.call != none {
		return false // it only releases
	}
	return a.stage != acts && a.stage != creating || a.children == pending || a.own != none ||
		a.on[0] != none || a.config != none ||
		a.node != none
}

// trim cuts off what all servers have carried out.
func (w *world) trim(m *model) {
	least := w.length
	for c := range m.size {
		least = min(least, w.clients[c].view)
	}
	for _, e := range w.log[:least] {
		switch e.what {
		case made:
			w.nodes[e.node].inBase = true
		case gone:
			w.nodes[e.node].inBase = false
		case configured:
			w.baseEra++
		}
	}
	copy(w.log[:], w.log[least:])
	w.length -= least
	for i := w.length; i < maxLog; i++ {
		w.log[i] = entry{}
	}
	for c := range m.size {
		w.clients[c].view -= least
	}
	for i := range w.attempts {
		if a := &w.attempts[i]; a.stage == synced {
			a.need = max(0, a.need-least)
		} else {
			a.need = 0
		}
	}
}

// dropWatches forgets the watches that no attempt looks at, and closes the gaps.
func (w *world) dropWatches() {
	var to [maxWatches]int8
	for i := range to {
		to[i] = none
	}
	for i := range w.attempts {
		if a := &w.attempts[i]; a.used {
			for _, one := range append([]int8{a.own}, a.on[:]...) {
				if one != none {
					to[one] = 0
				}
			}
		}
	}
	n := int8(0)
	for i := range w.watches {
		if to[i] == none {
			continue
		}
		if to[i] = n; int(n) != i {
			w.watches[n] = w.watches[i]
		}
		n++
	}
	for i := int(n); i < maxWatches; i++ {
		w.watches[i] = watch{}
	}
	for i := range w.attempts {
		if a := &w.attempts[i]; a.used {
			a.own = renamed(to[:], a.own)
			for j := range a.on {
				a.on[j] = renamed(to[:], a.on[j])
			}
		}
	}
}

func renamed(to []int8, i int8) int8 {
	if i == none {
		return none
	}
	return to[i]
}

// dropNodes forgets the nodes that are gone and that nobody knows.
func (w *world) dropNodes() {
	var known [maxNodes]bool
	note := func(i int8) {
		if i != none {
			known[i] = true
		}
	}
	for _, e := range w.log[:w.length] {
		if e.what != configured {
			note(e.node)
		}
	}
	for i := range w.attempts {
		if a := &w.attempts[i]; a.used {
			note(a.node)
			note(a.before)
			note(a.beside)
			for j := range known {
				known[j] = known[j] || a.names>>j&1 == 1
			}
		}
	}
	for _, one := range w.watches {
		if one.used {
			note(one.node)
		}
	}
	for _, one := range w.creates {
		if one.used {
			note(one.renews)
			note(one.beside)
		}
	}
	for i := range w.nodes {
		if n := &w.nodes[i]; n.used && n.gone && !n.inBase && !known[i] {
			*n = node{}
		}
	}
}

// sortNodes gives nodes their slots in the order of the queue, and the lowest sequence numbers that keep this
// order.
func (w *world) sortNodes() {
	var order [maxNodes]int8
	for i := range order {
		order[i] = int8(i)
	}
	slices.SortFunc(order[:], func(a, b int8) int { return compareNodes(&w.nodes[a], &w.nodes[b]) })
	var to [maxNodes]int8
	old := w.nodes
	rank, last := int8(0), int8(none)
	for i, from := range order {
		to[from] = int8(i)
		n := old[from]
		if n.used {
			if i > 0 && w.nodes[i-1].dir != n.dir {
				rank, last = 0, none
			}
			if n.seq != last {
				rank, last = rank+1, n.seq
			}
			n.seq = rank
		}
		w.nodes[i] = n
	}
	w.renameNodes(to[:])
}

func compareNodes(a, b *node) int {
	if a.used != b.used {
		if a.used {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.dir, b.dir), cmp.Compare(a.seq, b.seq), cmp.Compare(a.client, b.client),
		cmp.Compare(a.id, b.id))
}

func (w *world) renameNodes(to []int8) {
	for i := range w.log[:w.length] {
		if e := &w.log[i]; e.what != configured {
			e.node = to[e.node]
		}
	}
	for i := range w.attempts {
		if a := &w.attempts[i]; a.used {
			a.node, a.before, a.beside = renamed(to, a.node), renamed(to, a.before), renamed(to, a.beside)
			names := uint16(0)
			for j := range to {
				names |= a.names >> j & 1 << to[j]
			}
			a.names = names
		}
	}
	for i := range w.watches {
		if one := &w.watches[i]; one.used {
			one.node = to[one.node]
		}
	}
	for i := range w.creates {
		if one := &w.creates[i]; one.used {
			one.renews, one.beside = renamed(to, one.renews), renamed(to, one.beside)
		}
	}
}

// pack closes the gaps in the other tables.
func (w *world) pack() {
	n := 0
	for i := range w.creates {
		if one := w.creates[i]; one.used {
			w.creates[i] = create{}
			w.creates[n] = one
			n++
		}
	}
	n = 0
	for i := range w.sweeps {
		if one := w.sweeps[i]; one.used {
			w.sweeps[i] = sweep{}
			w.sweeps[n] = one
			n++
		}
	}
	for i := range w.attempts {
		if a := &w.attempts[i]; !a.used {
			*a = attempt{}
		}
	}
}
