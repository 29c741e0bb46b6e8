package placemodel

import (
	"slices"

	"github.com/turnstile-go/turnstile/internal/decide"
)

// move is something that can happen in a world.
type move struct {
	class class
	do    func(r *run, i int8)
	i     int8
	fault int8 // that it uses up; none if it is no fault
}

// class says what makes a move happen.
type class uint8

const (
	must     class = iota // clients and servers do it sooner or later
	patience              // the same, but only because a time is over
	mishap                // may happen
)

// moves returns what can happen. Its order does not change.
func (m *model) moves(w *world, all []move) []move {
	if i := m.beginner(w); i != none {
		return append(all, move{must, (*run).begin, i, none})
	}
	add := func(do func(*run, int8), i int8) { all = append(all, move{must, do, i, none}) }
	for c := range m.size {
		if w.clients[c].view < w.length {
			add((*run).apply, c)
		}
		if w.asks(c) {
			add((*run).answerWatch, c)
		}
	}
	for i := range int8(maxAttempts) {
		all = m.movesOf(w, i, all)
	}
	if w.length <= m.lag {
		all = m.movesOfLeader(w, all)
	}
	all = m.movesOfCalls(w, all)
	all = m.movesOfLocals(w, all)
	return m.mishaps(w, all)
}

// movesOfLeader returns what adds to the log. The leader waits while a server lags too far behind.
func (m *model) movesOfLeader(w *world, all []move) []move {
	add := func(do func(*run, int8), i int8) { all = append(all, move{must, do, i, none}) }
	for c := range m.size {
		if w.clients[c].old {
			add((*run).expire, c)
		}
	}
	for i := range int8(maxAttempts) {
		if a := &w.attempts[i]; a.used && a.stage == creating && (!a.joint || i%2 == 0) && !m.outOfTurn(w, a.call) {
			add((*run).carryOut, i)
		}
	}
	for i := range int8(maxCreates) {
		switch one := &w.creates[i]; {
		case one.used && one.lost:
			all = append(all, move{mishap, (*run).carryOutLate, i, none})
		case one.used:
			add((*run).carryOutLate, i)
		}
	}
	for i := range int8(maxSweeps) {
		if w.sweeps[i].used {
			add((*run).sweep, i)
		}
	}
	for i := range int8(maxNodes) {
		if n := &w.nodes[i]; n.used && !n.gone && n.leaving == leaves {
			add((*run).remove, i)
		}
	}
	return all
}

// asks reports whether a request of a client is under way that sets a watch.
func (w *world) asks(c int8) bool {
	for i := range w.watches {
		if one := &w.watches[i]; one.used && one.client == c && one.state == asked {
			return true
		}
	}
	return false
}

func (m *model) movesOf(w *world, i int8, all []move) []move {
	a := &w.attempts[i]
	if !a.used {
		return all
	}
	add := func(do func(*run, int8)) { all = append(all, move{must, do, i, none}) }
	switch a.stage {
	case listing:
		add((*run).answerList)
	case syncing:
		if !a.joint || i%2 == 0 {
			add((*run).sync)
		}
	case synced:
		if w.clients[a.client].view >= a.need {
			add((*run).answerList)
		}
	case reading:
		add((*run).answerReading)
	case watches:
		if a.wake && !a.blocked {
			add((*run).lookAgain)
		}
		if a.config == asked {
			add((*run).answerConfig)
		}
	}
	return all
}

// lookAgain has an attempt look at what has woken it.
func (r *run) lookAgain(i int8) {
	a := &r.world.attempts[i]
	r.tell("%s%d looks at its watches", r.of(a.client), a.id)
	r.hear(i, decide.Run)
}

func (m *model) movesOfCalls(w *world, all []move) []move {
	add := func(do func(*run, int8), i int8) { all = append(all, move{must, do, i, none}) }
	for i := range int8(len(m.programs)) {
		one := &w.calls[i]
		switch one.phase {
		case ready:
			if !m.outOfTurn(w, i) {
				add((*run).begin, i)
			}
		case confirms:
			if w.confirmed(m, i) {
				add((*run).goOn, i)
			}
		case holds:
			if m.programs[i].local {
				add((*run).passOn, i)
				break
			}
			add((*run).release, i)
			if m.programs[i].down != 0 && !w.attempts[2*i+1].used && w.attempts[2*i].beside == none {
				add((*run).downgrade, i)
			}
		}
	}
	return all
}

// beginner returns a caller that begins at once, or none. When it begins makes no difference, since its
// create may take as long as it likes. It does make one for a caller of a Local, which may find a place that
// is kept, and for one that notes which configuration there is.
func (m *model) beginner(w *world) int8 {
	for i := range int8(len(m.programs)) {
		if w.calls[i].phase == ready && !m.programs[i].local && (len(m.configs) == 0 || m.early) {
			return i
		}
	}
	return none
}

// outOfTurn reports whether a caller has done nothing yet, and neither has the one before it, which is like
// it. Then that one is the first to do something: to let each of them be the first would explore each
// schedule twice.
func (m *model) outOfTurn(w *world, i int8) bool {
	if i <= 0 || !m.fresh(w, i) || !m.fresh(w, i-1) {
		return false
	}
	a, b := &m.programs[i], &m.programs[i-1]
	return a.sameAs(b) && (a.client == b.client || m.crowd(a.client) == 1 && m.crowd(b.client) == 1)
}

func (a *caller) sameAs(b *caller) bool {
	return !a.local && !b.local && slices.Equal(a.wants, b.wants) && a.joint == b.joint &&
		a.down == b.down && a.rounds == b.rounds
}

// fresh reports whether a caller has sent its first create at most.
func (m *model) fresh(w *world, i int8) bool {
	if w.calls[i].rounds != m.programs[i].rounds {
		return false
	}
	if w.calls[i].phase == ready {
		return !w.clients[m.programs[i].client].old
	}
	a := &w.attempts[2*i]
	return w.calls[i].phase == contends && w.calls[i].part == 0 && a.used && a.stage == creating &&
		!a.doubt && a.id <= i &&
		!w.clients[m.programs[i].client].old
}

// only returns the only call of a client, or none.
func (m *model) only(c int8) int8 {
	if m.crowd(c) == 1 {
		for i := range m.programs {
			if m.programs[i].client == c {
				return int8(i)
			}
		}
	}
	return none
}

// crowd is how many callers a client has.
func (m *model) crowd(c int8) (n int) {
	for i := range m.programs {
		if m.programs[i].client == c {
			n++
		}
	}
	return n
}

func (m *model) movesOfLocals(w *world, all []move) []move {
	if m.local == nil {
		return all
	}
	for c := range m.size {
		turn := w.clients[c].turn
		if turn == none {
			continue
		}
		a := &w.attempts[turn]
		if a.own != none && w.watches[a.own].state == deleted {
			all = append(all, move{must, (*run).loseNode, c, none})
			continue
		}
		if a.state != decide.Keeping {
			continue
		}
		if a.children != pending && !m.rules.keepsBlind {
			all = append(all, move{must, (*run).intrude, c, none})
		}
		all = append(all, move{patience, (*run).expireKept, c, none})
	}
	return all
}

// intrude follows when the watch on the children of a kept place has ended.
func (r *run) intrude(c int8) { r.leaveKept(c) }

// expireKept follows when the time of a kept place is over.
func (r *run) expireKept(c int8) {
	r.tell("the time is over for which %s keeps its place", r.of(c))
	r.leaveKept(c)
}

// loseNode ends a turn whose node is gone.
func (r *run) loseNode(c int8) {
	r.tell("%s learns that its node is gone", r.of(c))
	w := r.world
	turn := w.clients[c].turn
	w.clients[c].turn = none
	for i := range r.programs {
		if one := &w.calls[i]; r.programs[i].client == c && r.programs[i].local && one.phase == holds {
			one.next()
		}
	}
	if w.clients[c].peer == none && r.first(c) != none {
		r.contend(c, none)
	}
	r.hear(turn, decide.Quit)
}

func (m *model) mishaps(w *world, all []move) []move {
	add := func(fault int8, do func(*run, int8), i int8) {
		if w.faults[fault] > 0 {
			all = append(all, move{mishap, do, i, fault})
		}
	}
	for c := range m.size {
		if m.outOfTurn(w, m.only(c)) || !w.cares(c) && !w.sends(c) {
			continue
		}
		if add(faultCut, (*run).cut, c); !w.clients[c].old {
			if add(faultLose, (*run).lose, c); m.rules.expiresFirst {
				add(faultLose, (*run).expireEarly, c)
			}
		}
	}
	for i := range int8(len(m.programs)) {
		switch w.calls[i].phase {
		case contends, queues, downgrades:
			if m.outOfTurn(w, i) {
				break
			}
			add(faultCancel, (*run).cancel, i)
		}
	}
	if w.length > m.lag {
		return all
	}
	for i := range int8(maxNodes) {
		if n := &w.nodes[i]; n.used && !n.gone {
			add(faultDelete, (*run).operate, i)
			add(faultChange, (*run).touch, i)
		}
	}
	if int(w.era)+1 < len(m.configs) {
		add(faultResize, func(r *run, _ int8) { r.resize() }, 0)
	}
	return all
}

// sends reports whether a client has a create under way.
func (w *world) sends(c int8) bool {
	for i := range w.attempts {
		if a := &w.attempts[i]; a.used && a.client == c {
			return true
		}
	}
	for i := range w.creates {
		if one := &w.creates[i]; one.used && one.client == c && !one.lost {
			return true
		}
	}
	return false
}
