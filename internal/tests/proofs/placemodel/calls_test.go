package placemodel

import "github.com/turnstile-go/turnstile/internal/decide"

// What callers do, and the functions of package place that make attempts for them.

// newAttempt makes an attempt, which sends its create. Each call has two slots. A Local uses those of its
// first caller.
func (r *run) newAttempt(a attempt) int8 {
	w := r.world
	slot := 2 * r.slotsOf(a.client, a.call)
	if w.attempts[slot].used || a.joint && a.dir == 1 {
		slot++
	}
	if w.attempts[slot].used {
		panic("no slot for an attempt is free")
	}
	a.used, a.id, a.state = true, w.newID(a.client), decide.Outside
	a.node, a.own, a.after, a.children, a.config = none, none, none, none, none
	a.on = [maxTargets]int8{none, none, none}
	a.lazy = a.call == none && r.lazy(a.client)
	w.attempts[slot] = a
	r.hear(slot, decide.Run)
	return slot
}

func (r *run) slotsOf(c, one int8) int8 {
	if one != none {
		return one
	}
	for i := range int8(len(r.programs)) {
		if r.programs[i].client == c && r.programs[i].local {
			return i
		}
	}
	panic("no caller of a Local")
}

// alone is an attempt for one lock of a call.
func (r *run) alone(c int8, want want) attempt {
	return attempt{call: c, client: r.programs[c].client, dir: want.dir, sort: want.sort, before: none,
		beside: none, renews: none}
}

// begin begins a call.
func (r *run) begin(c int8) {
	one := &r.world.calls[c]
	one.part = 0
	r.tell("a caller of %s begins", r.of(r.programs[c].client))
	switch {
	case r.programs[c].local:
		r.join(c)
		return
	case r.programs[c].joint:
		one.phase = contends
		for _, want := range r.programs[c].wants {
			a := r.alone(c, want)
			a.joint = true
			r.newAttempt(a)
		}
		return
	}
	one.phase = contends
	r.proceed(c)
}

// proceed takes the next locks of a call, until it has to wait for one.
func (r *run) proceed(c int8) {
	one := &r.world.calls[c]
	for int(one.part) < len(r.programs[c].wants) {
		want := r.programs[c].wants[one.part]
		i := r.attemptOf(c, want.dir)
		switch {
		case i == none:
			r.newAttempt(r.alone(c, want))
			return
		case r.world.attempts[i].state == decide.Holding:
			one.part++
			continue
		case r.world.attempts[i].state == decide.Deciding && r.world.attempts[i].failed:
			r.hear(i, decide.Lost)
		case r.world.attempts[i].state == decide.Deciding:
			r.hear(i, decide.Run)
		}
		return
	}
	one.phase = holds
}

// attemptOf returns the attempt of a call in a directory, or none.
func (r *run) attemptOf(c, dir int8) int8 {
	for i := 2 * c; i < 2*c+2; i++ {
		if a := &r.world.attempts[i]; a.used && a.dir == dir && a.beside == none {
			return i
		}
	}
	return none
}

// granted follows a grant. It is where two that exclude each other would be seen.
func (r *run) granted(i int8) {
	a := &r.world.attempts[i]
	a.on, a.rest, a.config, a.blocked, a.wake, a.stage = [maxTargets]int8{none, none, none}, 0, none,
		false, false, acts
	a.names = 0
	if a.call != none {
		a.own = none
	}
	r.checkGrant(i)
	switch {
	case a.call == none:
		r.turnBegins(i)
	case a.beside != none:
		r.world.calls[a.call].phase = holds
	case !a.joint:
		r.proceed(a.call)
	}
}

// again makes the next attempt after a loss.
func (r *run) again(i int8) {
	old := r.world.attempts[i]
	r.world.attempts[i] = attempt{}
	if old.call == none {
		r.contend(old.client, none)
		return
	}
	a := r.alone(old.call, want{old.dir, old.sort})
	a.beside = old.beside
	r.newAttempt(a)
}

// renew makes an attempt that takes the place of one that is outdated.
func (r *run) renew(i int8) {
	old := &r.world.attempts[i]
	a := r.alone(old.call, want{old.dir, old.sort})
	a.renews, a.renewed = i, true
	r.newAttempt(a)
}

// release ends a hold: of the writer's place first, if there is a reader's beside it.
func (r *run) release(c int8) {
	one := &r.world.calls[c]
	writer := int8(none)
	for i := 2 * c; i < 2*c+2; i++ {
		if a := &r.world.attempts[i]; a.used && a.beside != none {
			writer = r.attemptOf(c, a.dir)
		}
	}
	if writer != none {
		r.tell("%s has taken the reader's place, and gives the writer's up", r.of(r.programs[c].client))
		r.hear(writer, decide.Quit)
		return
	}
	r.tell("%s releases what it holds", r.of(r.programs[c].client))
	for i := 2 * c; i < 2*c+2; i++ {
		if r.world.attempts[i].used {
			r.hear(i, decide.Quit)
		}
	}
	one.next()
}

// next is the next round of a call, if there is one.
func (c *call) next() {
	c.part, c.at = 0, 0
	if c.rounds--; c.rounds > 0 {
		c.phase = ready
		return
	}
	c.phase = done
}

// downgrade takes a reader's place beside that of a writer that holds.
func (r *run) downgrade(c int8) {
	r.tell("%s downgrades", r.of(r.programs[c].client))
	r.world.calls[c].phase = downgrades
	a := r.alone(c, want{0, r.programs[c].down})
	a.beside = r.world.attempts[r.attemptOf(c, 0)].node
	r.newAttempt(a)
}

// decideTogether decides for the members of a party, once all have listings. Those up to the first that has
// to wait are kept.
func (r *run) decideTogether(c int8) {
	all := r.members(c)
	for _, i := range all {
		if r.world.attempts[i].stage != listed {
			return
		}
	}
	waits := false
	for _, i := range all {
		a := &r.world.attempts[i]
		a.stage, a.joint = acts, false
		switch {
		case waits && !r.rules.standsInAll:
			r.hear(i, decide.Quit)
			continue
		case waits:
			continue
		}
		if !a.failed {
			if ahead, ok := r.decide(i); ok && ahead.MayGo() {
				a.joint = true // granted with others: the caller takes them in order
				r.hear(i, decide.Free)
				a.joint = false
				continue
			}
		}
		waits = true
	}
	r.world.calls[c].phase = confirms
}

// members returns the attempts of a party, in the order of the locks.
func (r *run) members(c int8) []int8 {
	var all []int8
	for i := 2 * c; i < 2*c+2; i++ {
		if r.world.attempts[i].used && r.world.attempts[i].joint {
			all = append(all, i)
		}
	}
	return all
}

// confirmed reports whether the servers have deleted what a call has given up.
func (w *world) confirmed(m *model, c int8) bool {
	for i := range w.nodes {
		if n := &w.nodes[i]; n.used && !n.gone && n.leaving != stays && n.client == m.programs[c].client {
			return false
		}
	}
	for i := range w.sweeps {
		if s := &w.sweeps[i]; s.used && s.client == m.programs[c].client {
			return false
		}
	}
	return true
}

// goOn follows when the servers have confirmed that.
func (r *run) goOn(c int8) {
	r.world.calls[c].phase = contends
	if i := 2 * c; !r.world.attempts[i].used && !r.world.attempts[i+1].used {
		r.begin(c)
		return
	}
	r.proceed(c)
}

// foundTogether follows when the members of a party have looked for their nodes.
func (r *run) foundTogether(c int8) {
	all := r.members(c)
	found := 0
	for _, i := range all {
		if r.world.attempts[i].stage != listed {
			return
		}
		if r.world.attempts[i].node != none {
			found++
		}
	}
	in := decide.NotFound
	switch found {
	case len(all):
		in = decide.Found
	case 0:
	default:
		r.tell("of the nodes of one transaction, some are gone")
		for _, i := range all {
			r.world.attempts[i].joint = false
			r.hear(i, decide.Quit)
		}
		r.world.calls[c].phase = confirms
		return
	}
	for _, i := range all {
		r.world.attempts[i].stage = acts
	}
	for _, i := range all {
		r.hear(i, in)
	}
}

// cancel ends the context of a caller that waits.
func (r *run) cancel(c int8) {
	one := &r.world.calls[c]
	r.tell("the context of a caller of %s ends", r.of(r.programs[c].client))
	if one.phase == queues {
		r.withdraw(c)
		return
	}
	if one.phase == downgrades { // it goes on to hold the writer's place
		for i := 2 * c; i < 2*c+2; i++ {
			if r.world.attempts[i].beside != none && r.world.attempts[i].used {
				r.hear(i, decide.Quit)
				return
			}
		}
	}
	r.giveUp(c)
}

// giveUp ends a call without what it wants.
func (r *run) giveUp(c int8) {
	r.quitAll(c)
	r.world.calls[c] = call{phase: done}
}

// quitAll gives up all attempts of a call.
func (r *run) quitAll(c int8) {
	for range 2 {
		for i := 2 * c; i < 2*c+2; i++ {
			a := &r.world.attempts[i]
			switch {
			case !a.used, a.state == decide.Moving: // it quits with the attempt that renews it
			default:
				a.joint = false
				r.hear(i, decide.Quit)
			}
		}
	}
}
