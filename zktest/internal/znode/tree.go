package znode

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"
)

// The values of a node's owner that are not a session.
const (
	containerOwner int64 = -1 << 63
	ttlMark        int64 = -1 << 56 // the highest byte set
	MaxTTL         int64 = 1<<40 - 1
)

// Stat is a node's stat. Clients see a few fields differently: see [Node.ClientStat].
type Stat struct {
	czxid, Mzxid, Pzxid int64
	ctime, mtime        int64 // milliseconds since 1970
	version, aversion   int32
	Cversion            int32 // kept: creates of children; clients see creates and deletes
	owner               int64
	dataLength          int32 // set by ClientStat
	numChildren         int32 // set by ClientStat
}

func newStat(zxid, time, owner int64) Stat {
	return Stat{czxid: zxid, Mzxid: zxid, Pzxid: zxid, ctime: time, mtime: time, owner: owner}
}

// ephemeral reports whether a session owns the node.
func (s Stat) ephemeral() bool {
	return s.owner != 0 && s.owner != containerOwner && !s.hasTTL()
}

func (s Stat) hasTTL() bool { return s.owner>>56 == -1 }

// A Node is one znode. Its data and ACL are replaced, and never changed in place.
type Node struct {
	Data     []byte
	ACL      []ACLEntry
	Stat     Stat
	children map[string]struct{}
}

// ClientStat returns the stat as clients see it.
func (n *Node) ClientStat() Stat {
	s := n.Stat
	if !s.ephemeral() {
		s.owner = 0
	}
	s.dataLength = int32(len(n.Data))
	s.numChildren = int32(len(n.children))
	s.Cversion = s.Cversion*2 - s.numChildren
	return s
}

// Names returns the children's names in an order that is always the same. It is neither alphabetic nor the order of
// creation, so that no client comes to rely on it: a real server's order is arbitrary.
func (n *Node) Names() []string {
	hashes := make(map[string]uint64, len(n.children))
	for name := range n.children {
		h := fnv.New64a()
		h.Write([]byte(name))
		hashes[name] = h.Sum64()
	}
	return slices.SortedFunc(maps.Keys(hashes), func(a, b string) int {
		return cmp.Or(cmp.Compare(hashes[a], hashes[b]), strings.Compare(a, b))
	})
}

// A Tree is the state after the transaction Zxid: all nodes and sessions.
type Tree struct {
	Zxid       int64
	Nodes      map[string]*Node // by path; the root is both "/" and ""
	Ephemerals map[int64]map[string]struct{}
	reapable   map[string]struct{}     // containers and nodes with a TTL
	Sessions   map[int64]time.Duration // with the timeout that each was created with
}

// NewTree returns the state of a new server: the root and ZooKeeper's own nodes.
func NewTree() *Tree {
	t := &Tree{
		Nodes:      make(map[string]*Node),
		Ephemerals: make(map[int64]map[string]struct{}),
		reapable:   make(map[string]struct{}),
		Sessions:   make(map[int64]time.Duration),
	}
	add := func(path string, acl []ACLEntry, children ...string) {
		n := &Node{Data: []byte{}, ACL: acl, children: make(map[string]struct{})}
		for _, child := range children {
			n.children[child] = struct{}{}
		}
		t.Nodes[path] = n
	}
	add("/", OpenACL, "zookeeper")
	t.Nodes[""] = t.Nodes["/"]
	add("/zookeeper", OpenACL, "quota", "config")
	add("/zookeeper/quota", OpenACL)
	add("/zookeeper/config", ReadACL)
	t.Nodes["/zookeeper/config"].Stat.aversion = -1
	return t
}

// Clone returns a copy. It shares data and ACLs, which never change in place.
func (t *Tree) Clone() *Tree {
	c := &Tree{
		Zxid:       t.Zxid,
		Nodes:      make(map[string]*Node, len(t.Nodes)),
		Ephemerals: make(map[int64]map[string]struct{}, len(t.Ephemerals)),
		reapable:   maps.Clone(t.reapable),
		Sessions:   maps.Clone(t.Sessions),
	}
	for path, n := range t.Nodes {
		copied := *n
		copied.children = maps.Clone(n.children)
		c.Nodes[path] = &copied
	}
	c.Nodes["/"] = c.Nodes[""]
	for session, paths := range t.Ephemerals {
		c.Ephemerals[session] = maps.Clone(paths)
	}
	return c
}

// Owned returns the paths of a session's nodes, sorted.
func (t *Tree) Owned(session int64) []string {
	return slices.Sorted(maps.Keys(t.Ephemerals[session]))
}

// Reapables returns the paths of containers and nodes with a TTL, sorted.
func (t *Tree) Reapables() []string { return slices.Sorted(maps.Keys(t.reapable)) }

// Count returns the number of nodes. Like ZooKeeper it counts the root twice.
func (t *Tree) Count() int { return len(t.Nodes) }

// EphemeralCount returns the number of ephemeral nodes.
func (t *Tree) EphemeralCount() int {
	n := 0
	for _, paths := range t.Ephemerals {
		n += len(paths)
	}
	return n
}

// CountBelow returns the number of nodes under path, at any depth.
func (t *Tree) CountBelow(path string) int {
	if path == "/" {
		return len(t.Nodes) - 2
	}
	n := 0
	for other := range t.Nodes {
		if strings.HasPrefix(other, path+"/") {
			n++
		}
	}
	return n
}
