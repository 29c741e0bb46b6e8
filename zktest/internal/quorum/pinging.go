package quorum

// scheduleRound schedules the next round, half a tick from now.
func (l *leadership) scheduleRound() {
	l.m.later(l.m.st.conf.real(l.m.st.conf.Tick/2), &l.m.overdue.pings, l.round)
}

// round pings all followers. In every second round, once a tick, the leader first checks that it has
// heard from a quorum lately, and steps down if it has not.
func (l *leadership) round() {
	if l.m.lead != l {
		return
	}
	if l.half = !l.half; !l.half {
		l.ticks++
		if !l.hasQuorum() {
			l.m.lookForLeader()
			return
		}
	}
	for _, f := range l.learners { // drop replaces the slice, and does not change it
		l.send(f, message{kind: messagePing})
	}
	l.scheduleRound()
}

func (l *leadership) hasQuorum() bool {
	heard := 1
	for _, f := range l.learners {
		if l.ticks <= f.deadline {
			heard++
		}
	}
	return heard >= l.m.st.quorum()
}
