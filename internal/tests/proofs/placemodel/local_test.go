package placemodel

import "github.com/turnstile-go/turnstile/internal/decide"

// The queue of a process: internal/hold/localstate.go and keep.go.

// localRules are what a Local was made with.
type localRules struct {
	lazy      bool
	handovers int8
}

// lazy reports whether a client keeps its places.
func (m *model) lazy(c int8) bool {
	if m.local == nil || !m.local.lazy {
		return false
	}
	for _, one := range m.programs {
		if one.client == c && one.local {
			return true
		}
	}
	return false
}

// join is join of a Local.
func (r *run) join(c int8) {
	one, l := &r.world.calls[c], &r.world.clients[r.programs[c].client]
	before := int8(none)
	if l.turn != none && r.world.attempts[l.turn].state == decide.Keeping {
		if r.usable(l) {
			r.tell("    its place is kept, and it uses that again")
			r.use(c)
			return
		}
		before = r.leaveKept(r.programs[c].client)
	}
	one.phase, l.came = queues, l.came+1
	one.at = l.came
	if l.turn == none && l.peer == none {
		r.contend(r.programs[c].client, before)
	}
}

// usable is usable of a tenure, and stands of its turn.
func (r *run) usable(l *client) bool {
	a := &r.world.attempts[l.turn]
	return l.fit && !l.barred && (a.children == pending || r.rules.keepsBlind) && r.standsByWatch(a)
}

func (r *run) standsByWatch(a *attempt) bool {
	return a.own == none || r.world.watches[a.own].state != deleted
}

// use begins a hold of a kept place.
func (r *run) use(c int8) {
	l := &r.world.clients[r.programs[c].client]
	r.checkKept(l.turn)
	r.hear2(l.turn, decide.Used)
	r.checkGrant(l.turn)
	r.world.calls[c].phase = holds
}

// hear2 is hear for a turn, whose grants are leases.
func (r *run) hear2(i int8, in decide.Input) {
	a := &r.world.attempts[i]
	move, ok := r.rules.step(a.state, in)
	if !ok {
		r.fail("a turn that is %v hears: %v", a.state, in)
		return
	}
	a.state = move.To
}

// contend has a Local contend for its waiters.
func (r *run) contend(c, before int8) {
	want := r.localWant(c)
	i := r.newAttempt(attempt{call: none, client: c, dir: want.dir, sort: want.sort, before: before,
		beside: none, renews: none})
	r.world.clients[c].peer = i
}

func (r *run) localWant(c int8) want {
	for _, one := range r.programs {
		if one.client == c && one.local {
			return one.wants[0]
		}
	}
	panic("no caller of a Local")
}

// first returns the first waiter of a Local, or none.
func (r *run) first(c int8) int8 {
	first := int8(none)
	for i := range r.programs {
		one := &r.world.calls[i]
		if r.programs[i].client == c && one.phase == queues && (first == none ||
			one.at < r.world.calls[first].at) {
			first = int8(i)
		}
	}
	return first
}

// placed follows when an attempt has its place: the node of the turn before may go.
func (r *run) placed(i int8) {
	if r.world.attempts[i].call != none {
		return
	}
	for j := range r.world.nodes {
		if n := &r.world.nodes[j]; n.client == r.world.attempts[i].client && n.leaving == leavesNext {
			n.leaving = leaves
		}
	}
}

// turnBegins begins a turn with an attempt that was granted.
func (r *run) turnBegins(i int8) {
	a := &r.world.attempts[i]
	l := &r.world.clients[a.client]
	l.turn, l.peer, l.left, l.barred = i, none, r.local.handovers, false
	l.fit = a.lazy && a.children != none
	r.placed(i)
	r.world.calls[r.first(a.client)].phase = holds
}

// passOn follows the release of a lease of a Local.
func (r *run) passOn(c int8) {
	client := r.programs[c].client
	l := &r.world.clients[client]
	r.tell("%s releases what it holds", r.of(client))
	r.world.calls[c].next()
	if l.turn == none {
		return // it was lost
	}
	a := &r.world.attempts[l.turn]
	undisturbed := l.fit && !l.barred && (a.children == pending || r.rules.keepsBlind)
	next := r.first(client)
	switch {
	case next == none && undisturbed && r.standsByWatch(a):
		r.tell("    %s keeps its place", r.of(client))
		r.hear2(l.turn, decide.Kept)
		return
	case next != none && r.standsByWatch(a) && (l.left > 0 || undisturbed):
		if !undisturbed {
			l.left--
		}
		r.tell("    %s hands the lock over to its next caller", r.of(client))
		r.hear2(l.turn, decide.Passed)
		r.world.calls[next].phase = holds
		r.checkGrant(l.turn)
		return
	}
	r.endTurn(client)
}

// endTurn ends the turn of a Local, which contends for those that wait: see TurnOver and release.
func (r *run) endTurn(c int8) {
	l := &r.world.clients[c]
	turn := l.turn
	l.turn = none
	on := r.world.attempts[turn].node
	if r.first(c) != none {
		r.world.nodes[on].leaving = leavesNext
		r.contend(c, on)
	}
	r.hear(turn, decide.Quit)
}

// leaveKept gives up the place that a Local keeps, and returns its node.
func (r *run) leaveKept(c int8) int8 {
	l := &r.world.clients[c]
	turn := l.turn
	l.turn = none
	on := r.world.attempts[turn].node
	r.tell("    %s gives up the place that it keeps", r.of(c))
	r.hear(turn, decide.Quit)
	return on
}

// withdraw takes a caller out of the queue of its Local.
func (r *run) withdraw(c int8) {
	client := r.programs[c].client
	r.world.calls[c] = call{phase: done}
	l := &r.world.clients[client]
	if l.peer != none && r.first(client) == none {
		peer := l.peer
		l.peer = none
		r.hear(peer, decide.Quit)
		r.releaseNext(client)
	}
}

// releaseNext deletes the node of the turn before although its successor has no place: see the deferred
// placed of contend.
func (r *run) releaseNext(c int8) {
	for j := range r.world.nodes {
		if n := &r.world.nodes[j]; n.client == c && n.leaving == leavesNext {
			n.leaving = leaves
		}
	}
}

// loseLocal ends the turn and the contender of a Local with their session.
func (r *run) loseLocal(c int8) {
	l := &r.world.clients[c]
	if l.turn != none {
		r.world.attempts[l.turn] = attempt{}
		l.turn = none
		for i := range r.programs {
			if one := &r.world.calls[i]; r.programs[i].client == c && r.programs[i].local &&
				one.phase == holds {
				one.next()
			}
		}
	}
	if l.peer != none {
		r.world.attempts[l.peer] = attempt{}
		l.peer = none
	}
	if r.local != nil && r.first(c) != none {
		r.contend(c, none)
	}
}
