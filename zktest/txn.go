package zktest

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// A txn is what one request, or one session's end, changes: all of it or, if
// the request was refused, nothing, and then it still has its number.
type txn struct {
	zxid    int64
	time    int64
	changes []change
	op      Op            // OpConnect or OpClose: it creates or ends a session; otherwise 0
	session int64         // the one that op is about
	timeout time.Duration // of the session that it creates

	request    *request    // that it was made for; nil: none
	err        error       // why it changes nothing; nil if it does, and for a multi
	operations []operation // of a multi
	failed     []byte      // the answer to a multi that changes nothing
}

// A change has been found possible in the state it will be applied to.
type change struct {
	op       Op // create, delete, setData, setACL; a check changes nothing
	path     string
	data     []byte
	acl      []aclEntry
	owner    int64
	version  int32 // after it
	cversion int32 // of the parent, after it
}

// eventType is a kind of watch event.
type eventType int32

const (
	nodeCreated         eventType = wire.EventCreated
	nodeDeleted         eventType = wire.EventDeleted
	nodeDataChanged     eventType = wire.EventDataChanged
	nodeChildrenChanged eventType = wire.EventChildrenChanged
)

// A nodeEvent is something that watches may be waiting for.
type nodeEvent struct {
	kind eventType
	path string
	acl  []aclEntry // who may not read the node is not told
}

// apply makes one change. It returns the node's stat after it, and what happened
// in the order in which watches hear of it.
func (t *tree) apply(c change, zxid, time int64) (nodeStat, []nodeEvent) {
	switch c.op {
	case OpCreate:
		return t.create(c, zxid, time)
	case OpDelete:
		return nodeStat{}, t.delete(c.path, zxid)
	case OpSetData:
		n := t.nodes[c.path]
		n.data = c.data
		n.stat.mtime, n.stat.mzxid, n.stat.version = time, zxid, c.version
		return n.told(), []nodeEvent{{nodeDataChanged, c.path, n.acl}}
	case OpSetACL:
		n := t.nodes[c.path]
		n.acl, n.stat.aversion = c.acl, c.version
		return n.told(), nil
	}
	return nodeStat{}, nil
}

func (t *tree) create(c change, zxid, time int64) (nodeStat, []nodeEvent) {
	parentPath, name, _ := splitPath(c.path)
	parent := t.nodes[parentPath]
	// Past the last 32-bit number it stands still, as in ZooKeeper.
	if c.cversion > parent.stat.cversion {
		parent.stat.cversion, parent.stat.pzxid = c.cversion, zxid
	}
	parent.children[name] = struct{}{}
	n := &node{data: c.data, acl: c.acl, stat: newStat(zxid, time, c.owner), children: make(map[string]struct{})}
	t.nodes[c.path] = n
	switch {
	case n.stat.ephemeral():
		if t.ephemerals[c.owner] == nil {
			t.ephemerals[c.owner] = make(map[string]struct{})
		}
		t.ephemerals[c.owner][c.path] = struct{}{}
	case c.owner != 0:
		t.reapable[c.path] = struct{}{}
	}
	return n.told(), []nodeEvent{
		{nodeCreated, c.path, c.acl},
		{nodeChildrenChanged, watchPath(parentPath), parent.acl},
	}
}

func (t *tree) delete(path string, zxid int64) []nodeEvent {
	parentPath, name, _ := splitPath(path)
	parent, n := t.nodes[parentPath], t.nodes[path]
	delete(parent.children, name)
	parent.stat.pzxid = max(parent.stat.pzxid, zxid)
	delete(t.nodes, path)
	delete(t.reapable, path)
	if owned := t.ephemerals[n.stat.owner]; owned != nil {
		delete(owned, path)
		if len(owned) == 0 {
			delete(t.ephemerals, n.stat.owner)
		}
	}
	return []nodeEvent{
		{nodeDeleted, path, n.acl},
		{nodeChildrenChanged, watchPath(parentPath), parent.acl},
	}
}
