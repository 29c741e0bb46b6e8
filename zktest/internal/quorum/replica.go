package quorum

import (
	"slices"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// A replica is one copy of the replicated state, as of the latest transaction applied to it, and the
// watches of the clients that read it.
type replica struct {
	tree     *znode.Tree
	data     *watchTable // on nodes and on paths without a node
	children *watchTable
}

func (c *Config) newReplica(t *znode.Tree) *replica {
	several := c.Release.WatchModes
	return &replica{tree: t, data: newWatchTable(several), children: newWatchTable(several)}
}

// apply makes a transaction's changes and notifies the watchers. It returns the stat after each change.
func (r *replica) apply(t *txn) []znode.Stat {
	r.tree.Zxid = t.zxid
	switch t.op {
	case codec.OpConnect:
		r.tree.Sessions[t.session] = t.timeout
	case codec.OpClose:
		delete(r.tree.Sessions, t.session)
	}
	stats := make([]znode.Stat, len(t.changes))
	for i, c := range t.changes {
		stat, events := r.tree.Apply(c, t.zxid, t.time)
		stats[i] = stat
		for _, event := range events {
			r.fire(event, t.zxid)
		}
	}
	return stats
}

// fire tells the watchers of an event that a transaction has caused.
func (r *replica) fire(event znode.Event, zxid int64) {
	var told []*Peer
	if event.Kind != znode.ChildrenChanged {
		told = r.data.trigger(event.Kind, event.Path)
		tell(told, event, zxid)
	}
	if event.Kind == znode.ChildrenChanged || event.Kind == znode.Deleted {
		// A client with both kinds of watch gets one event for a deleted node.
		also := r.children.trigger(event.Kind, event.Path)
		tell(slices.DeleteFunc(also, func(p *Peer) bool { return slices.Contains(told, p) }), event, zxid)
	}
}

func tell(peers []*Peer, event znode.Event, zxid int64) {
	for _, p := range peers {
		p.notify(event, zxid)
	}
}

// drop removes all watches of a client.
func (r *replica) drop(p *Peer) {
	r.data.drop(p)
	r.children.drop(p)
}

func (r *replica) watchCount() int { return r.data.count() + r.children.count() }
