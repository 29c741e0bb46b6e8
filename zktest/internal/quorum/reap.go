package quorum

// scheduleReap has the leader reap regularly.
func (l *leadership) scheduleReap() {
	l.m.later(l.m.st.conf.ContainerCheck, &l.m.overdue.inputs, func() {
		if l.m.lead == l {
			l.reap()
			l.scheduleReap()
		}
	})
}

// reap deletes the containers that have become empty and the nodes whose time to live is over, each in a
// transaction of its own. It returns how many it has deleted.
func (l *leadership) reap() int {
	reaped := 0
	for _, path := range l.m.tree.Reapables() {
		pr := l.preparation(&request{})
		if !pr.Reapable(path) {
			continue
		}
		pr.Remove(path)
		l.agree(pr, &txn{changes: pr.Changes})
		reaped++
	}
	return reaped
}
