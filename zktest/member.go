package zktest

import (
	"slices"
	"time"
)

// A member is what one server of an ensemble has: the state as far as it knows
// it, and the watches of its clients. All clients share one that is always up
// to date, other than those that [Server.Lag] has put on one of their own.
type member struct {
	tree     *tree
	data     *watchTable // of nodes and their absence
	children *watchTable

	lag    int   // how many transactions it stays behind
	behind []txn // committed and not applied, oldest first
}

func newMember(t *tree) *member {
	return &member{tree: t, data: newWatchTable(), children: newWatchTable()}
}

// apply makes a transaction's changes and tells those who watch. It returns
// each change's stat.
func (m *member) apply(t txn) []nodeStat {
	m.tree.zxid = t.zxid
	stats := make([]nodeStat, len(t.changes))
	for i, c := range t.changes {
		stat, events := m.tree.apply(c, t.zxid, t.time)
		stats[i] = stat
		for _, event := range events {
			m.fire(event)
		}
	}
	return stats
}

func (m *member) fire(event nodeEvent) {
	var told []*peer
	if event.kind != nodeChildrenChanged {
		told = m.data.trigger(event.kind, event.path)
		tell(told, event)
	}
	if event.kind == nodeChildrenChanged || event.kind == nodeDeleted {
		// Who watches a node in both ways hears once that it is gone.
		also := m.children.trigger(event.kind, event.path)
		tell(slices.DeleteFunc(also, func(p *peer) bool { return slices.Contains(told, p) }), event)
	}
}

func tell(peers []*peer, event nodeEvent) {
	for _, p := range peers {
		p.notify(event)
	}
}

// drop forgets a client.
func (m *member) drop(p *peer) {
	m.data.drop(p)
	m.children.drop(p)
}

func (m *member) watchCount() int { return m.data.count() + m.children.count() }

// learn hears of a transaction, and falls behind by at most its lag.
func (m *member) learn(t txn) {
	m.behind = append(m.behind, t)
	for len(m.behind) > m.lag {
		m.step()
	}
}

// step applies the next transaction.
func (m *member) step() {
	m.apply(m.behind[0])
	m.behind = m.behind[1:]
}

// catchUp applies everything up to a transaction.
func (m *member) catchUp(zxid int64) {
	for len(m.behind) > 0 && m.behind[0].zxid <= zxid {
		m.step()
	}
}

// catchUpTime applies everything that was committed at a time or before.
func (m *member) catchUpTime(t time.Time) {
	for len(m.behind) > 0 && m.behind[0].time <= t.UnixMilli() {
		m.step()
	}
}
