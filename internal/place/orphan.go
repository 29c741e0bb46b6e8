package place

import (
	"path"

	"github.com/go-zookeeper/zk"
)

// isOrphan reports whether a contender's node is not ephemeral. Such a node was made by hand, and
// no session's end deletes it.
func isOrphan(stat *zk.Stat) bool { return stat != nil && stat.EphemeralOwner == 0 }

// warnOfOrphan logs a warning if a node that is waited for is not ephemeral. It does so once for
// each node and manager.
func (a *attempt) warnOfOrphan(name string, stat *zk.Stat) {
	if !isOrphan(stat) {
		return
	}
	node := path.Join(a.q.dir, name)
	m := a.q.m
	if m.FirstWarning(node, stat.Czxid) {
		m.Logger().Warn("a lock waits for a node that is not ephemeral and stays until it is deleted; "+
			"delete it if nobody uses it", "lock", a.q.dir, "node", node)
	}
}
