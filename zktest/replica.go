package zktest

import "slices"

// A replica is the tree as far as one server has applied the transactions, and
// the watches of the clients that read it.
type replica struct {
	tree     *tree
	data     *watchTable // of nodes and their absence
	children *watchTable
}

func newReplica(t *tree) *replica {
	return &replica{tree: t, data: newWatchTable(), children: newWatchTable()}
}

// apply makes a transaction's changes and tells those who watch. It returns
// each change's stat.
func (r *replica) apply(t *txn) []nodeStat {
	r.tree.zxid = t.zxid
	switch t.op {
	case OpConnect:
		r.tree.sessions[t.session] = t.timeout
	case OpClose:
		delete(r.tree.sessions, t.session)
	}
	stats := make([]nodeStat, len(t.changes))
	for i, c := range t.changes {
		stat, events := r.tree.apply(c, t.zxid, t.time)
		stats[i] = stat
		for _, event := range events {
			r.fire(event)
		}
	}
	return stats
}

func (r *replica) fire(event nodeEvent) {
	var told []*peer
	if event.kind != nodeChildrenChanged {
		told = r.data.trigger(event.kind, event.path)
		tell(told, event)
	}
	if event.kind == nodeChildrenChanged || event.kind == nodeDeleted {
		// Who watches a node in both ways hears once that it is gone.
		also := r.children.trigger(event.kind, event.path)
		tell(slices.DeleteFunc(also, func(p *peer) bool { return slices.Contains(told, p) }), event)
	}
}

func tell(peers []*peer, event nodeEvent) {
	for _, p := range peers {
		p.notify(event)
	}
}

// drop forgets a client.
func (r *replica) drop(p *peer) {
	r.data.drop(p)
	r.children.drop(p)
}

func (r *replica) watchCount() int { return r.data.count() + r.children.count() }
