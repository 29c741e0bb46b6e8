package placemodel

import "github.com/turnstile-go/turnstile/internal/decide"

// What the servers do. The leader carries out one transaction after another, which makes the log. The server
// of a client carries out the log at its own pace, and what it does and answers reaches the client at once: a
// slow network is a slow server.

// make has the leader make a node. It returns its slot, or none if the name is taken.
func (r *run) make(n node, beside int8) int8 {
	w := r.world
	if beside != none {
		n.seq = w.nodes[beside].seq
	} else {
		for i := range w.nodes {
			if w.nodes[i].used && w.nodes[i].dir == n.dir {
				n.seq = max(n.seq, w.nodes[i].seq)
			}
		}
		n.seq++
	}
	slot := int8(none)
	for i := range int8(maxNodes) {
		switch other := &w.nodes[i]; {
		case !other.used && slot == none:
			slot = i
		case other.used && !other.gone && other.client == n.client && other.id == n.id &&
			other.seq == n.seq && other.dir == n.dir:
			return none
		}
	}
	if slot == none {
		panic("no slot for a node is free")
	}
	n.used, n.era = true, w.era
	w.nodes[slot] = n
	return slot
}

// erase has the leader delete a node.
func (r *run) erase(i int8, more bool) {
	n := &r.world.nodes[i]
	n.gone, n.leaving = true, stays
	r.put(entry{gone, i, more})
}

// carryOut has the leader carry out the create of an attempt, and of the others that are in the same
// transaction.
func (r *run) carryOut(i int8) {
	w := r.world
	a := &w.attempts[i]
	if a.joint {
		for j := range w.attempts {
			if b := &w.attempts[j]; b.used && b.call == a.call && b.joint && b.stage == creating {
				slot := r.make(node{client: b.client, id: b.id, dir: b.dir, sort: b.sort}, none)
				r.put(entry{made, slot, true})
				b.stage = answering
				r.tell("the leader makes %s", r.title(slot))
			}
		}
		w.log[w.length-1].more = false
		return
	}
	beside := a.beside
	if a.renews != none {
		old := w.attempts[a.renews].node
		beside = old
		switch {
		case w.nodes[old].gone && !r.rules.apart:
			r.tell("the leader refuses the renewal of %s, which is gone", r.title(old))
			r.hear(i, decide.Lost)
			return
		case !w.nodes[old].gone:
			if r.erase(old, !r.rules.apart); r.rules.apart {
				r.tell("the leader deletes %s, which is to be renewed", r.title(old))
				return
			}
		}
	}
	slot := r.make(node{client: a.client, id: a.id, dir: a.dir, sort: a.sort}, beside)
	if slot == none {
		r.tell("the leader refuses the create, since the node is there")
		r.hear(i, decide.Quit)
		return
	}
	r.put(entry{what: made, node: slot})
	a.stage = answering
	if a.renews != none {
		r.tell("the leader replaces %s by %s", r.title(w.attempts[a.renews].node), r.title(slot))
		return
	}
	r.tell("the leader makes %s", r.title(slot))
}

// carryOutLate has the leader carry out a create that no caller waits for.
func (r *run) carryOutLate(i int8) {
	c := r.world.creates[i]
	r.world.creates[i] = create{}
	beside := c.beside
	if c.renews != none {
		if beside = c.renews; r.world.nodes[beside].gone {
			r.tell("the leader refuses a late renewal")
			return
		}
		r.erase(c.renews, true)
	}
	n := node{client: c.client, id: c.id, dir: c.dir, sort: c.sort, old: c.old, orphaned: true}
	if !c.lost {
		n.leaving = leaves
	}
	slot := r.make(n, beside)
	if slot == none {
		r.tell("the leader refuses a late create, since the node is there")
		return
	}
	r.put(entry{what: made, node: slot})
	r.tell("the leader makes %s: a create whose caller does not wait for it any more", r.title(slot))
}

// expire has the servers end the session that a client has lost.
func (r *run) expire(c int8) {
	w := r.world
	r.tell("the servers end the former session of %s", r.of(c))
	w.clients[c].old = false
	last := int8(none)
	for i := range int8(maxNodes) {
		if n := &w.nodes[i]; n.used && !n.gone && n.client == c && n.old {
			r.erase(i, true)
			last = w.length - 1
		}
	}
	if last != none {
		w.log[last].more = false
	}
	for i := range w.creates {
		if one := &w.creates[i]; one.used && one.client == c && one.old {
			*one = create{}
		}
	}
}

// remove has the leader carry out a delete.
func (r *run) remove(i int8) {
	r.tell("the leader deletes %s for its client", r.title(i))
	r.erase(i, false)
}

// sweep has a client delete the nodes of an id, one by one, until there are none.
func (r *run) sweep(i int8) {
	w := r.world
	s := w.sweeps[i]
	for j := range int8(maxNodes) {
		if n := &w.nodes[j]; n.used && !n.gone && !n.old && n.client == s.client && n.id == s.id {
			r.tell("%s sweeps: the leader deletes %s", r.of(s.client), r.title(j))
			r.erase(j, false)
			return
		}
	}
	r.tell("%s has swept: no node of its lost create is left", r.of(s.client))
	w.sweeps[i] = sweep{}
	for j := range w.creates {
		if one := &w.creates[j]; one.used && one.lost && one.client == s.client && one.id == s.id &&
			!r.rules.lateAfterSweep {
			*one = create{}
		}
	}
}

// apply has the server of a client carry out the next transaction of the log, and tell the client.
func (r *run) apply(c int8) {
	w := r.world
	for more := true; more; {
		e := w.log[w.clients[c].view]
		more = e.more
		w.clients[c].view++
		switch e.what {
		case made:
			r.tell("the server of %s carries out the create of %s", r.of(c), r.title(e.node))
			r.childrenOf(c, w.nodes[e.node].dir)
			r.answerCreate(c, e.node)
		case gone:
			r.tell("the server of %s carries out the delete of %s", r.of(c), r.title(e.node))
			r.childrenOf(c, w.nodes[e.node].dir)
			if !r.rules.dropsEvents {
				r.fire(c, e.node, deleted)
			}
		case changed:
			r.tell("the server of %s carries out the change of %s", r.of(c), r.title(e.node))
			r.fire(c, e.node, unclear)
		case configured:
			r.tell("the server of %s carries out the change of the limit", r.of(c))
			for i := range w.attempts {
				if a := &w.attempts[i]; a.used && a.client == c && a.config == pending {
					a.config, a.wake = unclear, true
				}
			}
		}
	}
}

// fire ends the watches of a client on a node.
func (r *run) fire(c, i, event int8) {
	w := r.world
	for j := range int8(maxWatches) {
		if one := &w.watches[j]; one.used && one.client == c && one.node == i && one.state == pending {
			one.state = event
			r.wakeAll(j)
		}
	}
}

// wakeAll wakes the attempts that look at a watch.
func (r *run) wakeAll(on int8) {
	w := r.world
	for i := range w.attempts {
		a := &w.attempts[i]
		if a.used && (a.own == on || a.on[0] == on || a.on[1] == on || a.on[2] == on) {
			a.wake = true
		}
	}
}

// childrenOf ends the watches of a client on the children of a directory.
func (r *run) childrenOf(c, dir int8) {
	w := r.world
	for i := range w.attempts {
		if a := &w.attempts[i]; a.used && a.client == c && a.dir == dir && a.children == pending {
			a.children = unclear
		}
	}
}

// answerCreate tells the attempt that has asked for a node.
func (r *run) answerCreate(c, i int8) {
	w := r.world
	n := &w.nodes[i]
	for j := range w.attempts {
		a := &w.attempts[j]
		if !a.used || a.stage != answering || a.client != c || n.client != c || a.id != n.id ||
			n.orphaned || n.old {
			continue
		}
		a.node, a.stage = i, listing
		r.placed(int8(j))
	}
}

// answerWatch answers the first request of a client that sets a watch.
func (r *run) answerWatch(c int8) {
	w := r.world
	for i := range int8(maxWatches) {
		one := &w.watches[i]
		if !one.used || one.client != c || one.state != asked {
			continue
		}
		if r.seen(c, w.nodes[one.node].dir)>>one.node&1 == 1 || r.rules.missesGone {
			one.state, one.told = pending, true
			r.tell("the server of %s sets a watch on %s", r.of(c), r.title(one.node))
		} else {
			one.state = deleted
			r.tell("the server of %s answers that %s is gone", r.of(c), r.title(one.node))
			r.wakeAll(i)
		}
		r.unblock(i)
		return
	}
	panic("no watch is asked for")
}

// unblock wakes the attempts that must not go before the answer to a watch on their own node.
func (r *run) unblock(own int8) {
	for i := range r.world.attempts {
		if a := &r.world.attempts[i]; a.used && a.blocked && a.own == own {
			a.blocked, a.wake = false, true
		}
	}
}

// answerConfig answers the request of an attempt that sets a watch on the directory.
func (r *run) answerConfig(i int8) {
	a := &r.world.attempts[i]
	a.config, a.configEra, a.wake, a.blocked = pending, r.eraOf(a.client), true, false
	r.tell("the server of %s sets a watch on the directory", r.of(a.client))
}
