package quorum

// pinging is the state of the leader's pinging thread, which runs a round twice a tick.
type pinging struct {
	ticks   int  // rounds so far, divided by two
	half    bool // the last round was in the middle of a tick
	held    bool // by HoldPings
	overdue bool // a round should have begun while it was held
}

// scheduleRound schedules the next round, half a tick from now.
func (l *leadership) scheduleRound() {
	l.m.later(l.m.st.conf.real(l.m.st.conf.Tick/2), &l.m.overdue.pings, l.round)
}

// round pings all followers. In every second round, once a tick, the leader first checks that it has
// heard from a quorum lately, and steps down if it has not.
func (l *leadership) round() {
	g := &l.pinging
	if l.m.lead != l {
		return
	}
	if g.held {
		g.overdue = true
		return
	}
	if g.half = !g.half; !g.half {
		g.ticks++
		if !l.hasQuorum() {
			l.m.lookForLeader()
			return
		}
	}
	for _, f := range l.learners { // drop replaces the slice, and does not change it
		if f.stuck(l.m.st.patience()) {
			l.drop(f)
		} else {
			l.send(f, message{kind: messagePing})
		}
	}
	l.scheduleRound()
}

func (l *leadership) hasQuorum() bool {
	heard := 1
	for _, f := range l.learners {
		if l.pinging.ticks <= f.deadline {
			heard++
		}
	}
	return heard >= l.m.st.quorum()
}

// HoldPings stops the pinging thread of each server that believes that it leads, or lets it
// continue.
func (st *State) HoldPings(on bool) {
	for _, m := range st.members {
		if m.lead != nil {
			m.lead.holdPings(on)
		}
	}
}

// holdPings stops the pinging thread, or lets it continue. An overdue round begins after PingLag, as
// after a standstill of the whole server.
func (l *leadership) holdPings(on bool) {
	g := &l.pinging
	g.held = on
	if !on && g.overdue {
		g.overdue = false
		l.m.later(l.m.st.PingLag, &l.m.overdue.pings, l.round)
	}
}
