package placemodel

import "github.com/turnstile-go/turnstile/internal/decide"

// What goes wrong.

// cut loses the connection of a client, which makes another at once. Nobody can tell a longer outage from a
// server that lags.
func (r *run) cut(c int8) {
	w := r.world
	r.tell("%s loses its connection, and makes another", r.of(c))
	for i := range int8(maxWatches) {
		if one := &w.watches[i]; one.used && one.client == c && one.state <= pending {
			if one.state = unclear; r.rules.forgetsBroken {
				one.state = dead
			}
			r.wakeAll(i)
			r.unblock(i)
		}
	}
	for i := range w.creates {
		if one := &w.creates[i]; one.used && one.client == c && !one.lost {
			one.lost = true
			r.startSweep(c, one.id)
		}
	}
	for i := range int8(maxAttempts) {
		if w.attempts[i].used && w.attempts[i].client == c {
			r.cutAttempt(i)
		}
	}
}

func (r *run) cutAttempt(i int8) {
	a := &r.world.attempts[i]
	if a.children == pending && !r.rules.forgetsBroken {
		a.children = deleted // not by a contender
	}
	if a.config == asked || a.config == pending {
		a.config, a.wake, a.blocked = unclear, true, false
	}
	switch a.stage {
	case creating:
		r.abandon(a, true)
		r.hear(i, decide.ReplyLost)
	case answering:
		for j := range r.world.nodes {
			if n := &r.world.nodes[j]; n.used && n.client == a.client && n.id == a.id && !n.old {
				n.orphaned = true
			}
		}
		r.hear(i, decide.ReplyLost)
	case synced:
		a.stage = syncing
	case reading:
		a.stage = listing
	}
}

// lose ends the session of a client, as its clock says. The servers end it later.
func (r *run) lose(c int8) {
	w := r.world
	r.tell("%s loses its session", r.of(c))
	w.clients[c].old = true
	for i := range w.attempts {
		if a := &w.attempts[i]; a.used && a.client == c && a.stage == creating && a.state != decide.Left {
			if a.joint && i%2 == 1 {
				continue // one transaction; the other half is of no interest to anybody
			}
			r.abandon(a, true)
		}
	}
	for i := range w.nodes {
		if n := &w.nodes[i]; n.used && !n.gone && n.client == c {
			n.old, n.leaving = true, stays
		}
	}
	for i := range w.creates {
		if one := &w.creates[i]; one.used && one.client == c {
			one.old, one.lost = true, true
		}
	}
	for i := range w.sweeps {
		if w.sweeps[i].client == c {
			w.sweeps[i] = sweep{}
		}
	}
	for i := range w.watches {
		if w.watches[i].client == c {
			w.watches[i].state = unclear
		}
	}
	r.loseCalls(c)
}

// loseCalls ends the attempts of a lost session. A caller that holds, or has a part of what it wants, has
// lost that. Others make another attempt.
func (r *run) loseCalls(c int8) {
	w := r.world
	r.loseLocal(c)
	for i := range r.programs {
		one := &w.calls[i]
		if r.programs[i].client != c || r.programs[i].local || one.phase == ready || one.phase == done {
			continue
		}
		has := one.part > 0 || one.phase == holds || one.phase == downgrades
		for j := 2 * i; j < 2*i+2; j++ {
			w.attempts[j] = attempt{}
		}
		if has {
			one.next()
			continue
		}
		one.phase = ready
	}
}

// expireEarly has the servers end a session before its client's clock does. Only a broken variant does that.
func (r *run) expireEarly(c int8) {
	r.tell("the servers end the session of %s, which does not know that", r.of(c))
	for i := range int8(maxNodes) {
		if n := &r.world.nodes[i]; n.used && !n.gone && n.client == c {
			r.erase(i, false)
		}
	}
}

// operate has an operator delete a node.
func (r *run) operate(i int8) {
	r.tell("an operator deletes %s", r.title(i))
	r.erase(i, false)
	r.world.nodes[i].operated = true
}

// touch has an operator set the data of a node.
func (r *run) touch(i int8) {
	r.tell("an operator sets the data of %s", r.title(i))
	r.put(entry{what: changed, node: i})
}

// resize has an operator set the limit.
func (r *run) resize() {
	r.world.era++
	r.tell("an operator sets the limit to %d", r.limits[r.world.era])
	r.put(entry{what: configured})
}
