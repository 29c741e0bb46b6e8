package zktest

import (
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"
)

// Values of a node's owner that are not a session.
const (
	containerOwner int64 = -1 << 63
	ttlMark        int64 = -1 << 56 // the highest byte set
	ttlMax         int64 = 1<<40 - 1
)

// nodeStat is what a node's stat keeps, and what of it a client is told.
type nodeStat struct {
	czxid, mzxid, pzxid int64
	ctime, mtime        int64 // milliseconds since 1970
	version, aversion   int32
	cversion            int32 // kept: creates of children; told: creates and deletes
	owner               int64
	dataLength          int32 // told
	numChildren         int32 // told
}

func newStat(zxid, time, owner int64) nodeStat {
	return nodeStat{czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: time, mtime: time, owner: owner}
}

// ephemeral reports whether a session owns the node.
func (s nodeStat) ephemeral() bool {
	return s.owner != 0 && s.owner != containerOwner && !s.hasTTL()
}

func (s nodeStat) hasTTL() bool { return s.owner>>56 == -1 }

// A node's fields are replaced, never changed in place, other than children.
type node struct {
	data     []byte
	acl      []aclEntry
	stat     nodeStat
	children map[string]struct{}
}

// told returns the stat that clients see.
func (n *node) told() nodeStat {
	s := n.stat
	if !s.ephemeral() {
		s.owner = 0
	}
	s.dataLength = int32(len(n.data))
	s.numChildren = int32(len(n.children))
	s.cversion = s.cversion*2 - s.numChildren
	return s
}

// names returns the children's names in an order that is always the same and
// means nothing, lest somebody rely on it.
func (n *node) names() []string {
	type hashed struct {
		name string
		hash uint64
	}
	all := make([]hashed, 0, len(n.children))
	for name := range n.children {
		h := fnv.New64a()
		h.Write([]byte(name))
		all = append(all, hashed{name, h.Sum64()})
	}
	slices.SortFunc(all, func(a, b hashed) int {
		switch {
		case a.hash < b.hash:
			return -1
		case a.hash > b.hash:
			return 1
		default:
			return strings.Compare(a.name, b.name)
		}
	})
	names := make([]string, len(all))
	for i, h := range all {
		names[i] = h.name
	}
	return names
}

// A tree is all nodes and sessions after the transaction zxid. It knows no
// watches and no clock: transactions that were found possible are applied to it.
type tree struct {
	zxid       int64
	nodes      map[string]*node // the root is both "/" and ""
	ephemerals map[int64]map[string]struct{}
	reapable   map[string]struct{}     // containers and nodes with a TTL
	sessions   map[int64]time.Duration // and the timeouts that they were made with
}

func newTree() *tree {
	t := &tree{
		nodes:      make(map[string]*node),
		ephemerals: make(map[int64]map[string]struct{}),
		reapable:   make(map[string]struct{}),
		sessions:   make(map[int64]time.Duration),
	}
	add := func(path string, acl []aclEntry, children ...string) {
		n := &node{data: []byte{}, acl: acl, children: make(map[string]struct{})}
		for _, child := range children {
			n.children[child] = struct{}{}
		}
		t.nodes[path] = n
	}
	add("/", openACL, "zookeeper")
	t.nodes[""] = t.nodes["/"]
	add("/zookeeper", openACL, "quota", "config")
	add("/zookeeper/quota", openACL)
	add("/zookeeper/config", readACL)
	t.nodes["/zookeeper/config"].stat.aversion = -1
	return t
}

// clone copies a tree; data and ACLs, which never change, are shared.
func (t *tree) clone() *tree {
	c := &tree{
		zxid:       t.zxid,
		nodes:      make(map[string]*node, len(t.nodes)),
		ephemerals: make(map[int64]map[string]struct{}, len(t.ephemerals)),
		reapable:   maps.Clone(t.reapable),
		sessions:   maps.Clone(t.sessions),
	}
	for path, n := range t.nodes {
		copied := *n
		copied.children = maps.Clone(n.children)
		c.nodes[path] = &copied
	}
	c.nodes["/"] = c.nodes[""]
	for session, paths := range t.ephemerals {
		c.ephemerals[session] = maps.Clone(paths)
	}
	return c
}

// owned returns the paths of a session's nodes, sorted.
func (t *tree) owned(session int64) []string {
	return slices.Sorted(maps.Keys(t.ephemerals[session]))
}

// reapables returns the paths of containers and nodes with a TTL, sorted.
func (t *tree) reapables() []string { return slices.Sorted(maps.Keys(t.reapable)) }

// count is how many nodes there are as ZooKeeper counts: the root twice.
func (t *tree) count() int { return len(t.nodes) }

func (t *tree) ephemeralCount() int {
	n := 0
	for _, paths := range t.ephemerals {
		n += len(paths)
	}
	return n
}

// below returns how many nodes are under path, at any depth.
func (t *tree) below(path string) int {
	if path == "/" {
		return len(t.nodes) - 2
	}
	n := 0
	for other := range t.nodes {
		if strings.HasPrefix(other, path+"/") {
			n++
		}
	}
	return n
}
