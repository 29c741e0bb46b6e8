package zktest

import "time"

// scheduleReap has the leader look for nodes to reap, again and again.
func (l *leadership) scheduleReap() {
	l.m.later(l.m.st.conf.containerCheck, &l.m.overdue.inputs, func() {
		if l.m.lead == l {
			l.reap()
			l.scheduleReap()
		}
	})
}

// reap deletes the containers that have become empty and the nodes whose time
// to live is over, each in its own transaction. It returns how many there were.
func (l *leadership) reap() int {
	reaped := 0
	for _, path := range l.m.tree.reapables() {
		pr := l.preparation(&request{})
		if !pr.reapable(path) {
			continue
		}
		pr.remove(path)
		l.agree(pr, &txn{changes: pr.changes})
		reaped++
	}
	return reaped
}

// reapable reports whether a node is a container that has become empty, or has
// no children and outlived its time to live.
func (pr *preparation) reapable(path string) bool {
	r, err := pr.look(path)
	if err != nil || r.children > 0 {
		return false
	}
	if n := pr.tree.nodes[path]; n.stat.hasTTL() {
		return time.Now().UnixMilli()-n.stat.mtime > n.stat.owner&ttlMax
	}
	return r.stat.cversion > 0 // a container that never had a child stays
}
