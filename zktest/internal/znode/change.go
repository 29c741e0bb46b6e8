package znode

import (
	"github.com/turnstile-go/turnstile/internal/codec"
)

// A Change is one operation of a transaction. Its preparation has found it possible in the
// state that it will be applied to.
type Change struct {
	Op       int32 // create, delete, setData, setACL, or check, which changes nothing
	Path     string
	data     []byte
	acl      []ACLEntry
	owner    int64
	version  int32 // after the change
	cversion int32 // of the parent, after the change
}

// EventKind is a kind of watch event, by its number in ZooKeeper's protocol.
type EventKind int32

// The kinds of watch event.
const (
	Created         EventKind = codec.EventCreated
	Deleted         EventKind = codec.EventDeleted
	DataChanged     EventKind = codec.EventDataChanged
	ChildrenChanged EventKind = codec.EventChildrenChanged
)

// An Event is a change of one node that triggers watches.
type Event struct {
	Kind EventKind
	Path string
	ACL  []ACLEntry // a client that may not read the node gets no event
}

// Apply makes one change. It returns the node's stat afterwards, and the events in the order in which clients get them.
func (t *Tree) Apply(c Change, zxid, time int64) (Stat, []Event) {
	switch c.Op {
	case codec.OpCreate:
		return t.create(c, zxid, time)
	case codec.OpDelete:
		return Stat{}, t.delete(c.Path, zxid)
	case codec.OpSetData:
		n := t.Nodes[c.Path]
		n.Data = c.data
		n.Stat.mtime, n.Stat.Mzxid, n.Stat.version = time, zxid, c.version
		return n.ClientStat(), []Event{{DataChanged, c.Path, n.ACL}}
	case codec.OpSetACL:
		n := t.Nodes[c.Path]
		n.ACL, n.Stat.aversion = c.acl, c.version
		return n.ClientStat(), nil
	}
	return Stat{}, nil
}

func (t *Tree) create(c Change, zxid, time int64) (Stat, []Event) {
	parentPath, name, _ := SplitPath(c.Path)
	parent := t.Nodes[parentPath]
	// As in ZooKeeper, the counter stays at the largest 32-bit number.
	if c.cversion > parent.Stat.Cversion {
		parent.Stat.Cversion, parent.Stat.Pzxid = c.cversion, zxid
	}
	parent.children[name] = struct{}{}
	n := &Node{Data: c.data, ACL: c.acl, Stat: newStat(zxid, time, c.owner), children: make(map[string]struct{})}
	t.Nodes[c.Path] = n
	switch {
	case n.Stat.ephemeral():
		if t.Ephemerals[c.owner] == nil {
			t.Ephemerals[c.owner] = make(map[string]struct{})
		}
		t.Ephemerals[c.owner][c.Path] = struct{}{}
	case c.owner != 0:
		t.reapable[c.Path] = struct{}{}
	}
	return n.ClientStat(), []Event{
		{Created, c.Path, c.acl},
		{ChildrenChanged, WatchPath(parentPath), parent.ACL},
	}
}

func (t *Tree) delete(path string, zxid int64) []Event {
	parentPath, name, _ := SplitPath(path)
	parent, n := t.Nodes[parentPath], t.Nodes[path]
	delete(parent.children, name)
	parent.Stat.Pzxid = max(parent.Stat.Pzxid, zxid)
	delete(t.Nodes, path)
	delete(t.reapable, path)
	if owned := t.Ephemerals[n.Stat.owner]; owned != nil {
		delete(owned, path)
		if len(owned) == 0 {
			delete(t.Ephemerals, n.Stat.owner)
		}
	}
	return []Event{
		{Deleted, path, n.ACL},
		{ChildrenChanged, WatchPath(parentPath), parent.ACL},
	}
}
