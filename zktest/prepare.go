package zktest

import (
	"fmt"
	"maps"
	"slices"
)

// operation is one write as a client asks for it.
type operation struct {
	op      Op
	path    string
	data    []byte
	acl     []aclEntry
	flags   int32
	ttl     int64
	version int32
}

// operation reads the body of a write.
func (d *decoder) operation(op Op) operation {
	o := operation{op: op, path: d.String(), ttl: -1}
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		o.data, o.acl, o.flags = d.data(), d.acls(), d.Int32()
		if op == OpCreateTTL {
			o.ttl = d.Int64()
		}
	case OpSetData:
		o.data, o.version = d.data(), d.Int32()
	case OpSetACL:
		o.acl, o.version = d.acls(), d.Int32()
	case OpDelete, OpCheck:
		o.version = d.Int32()
	}
	return o
}

// A preparation turns the operations of one request into changes, each seen
// from the state that those before it will leave. Nothing is changed yet.
type preparation struct {
	tree    *tree
	ahead   map[string]*record // what outstanding proposals will leave
	session int64
	ids     []identity
	pending map[string]*record
	changes []change
}

// record is what matters of a node; what is nil in pending will be gone.
type record struct {
	stat     nodeStat
	acl      []aclEntry
	children int
}

func (l *leadership) preparation(r *request) *preparation {
	return &preparation{
		tree:    l.m.tree,
		ahead:   l.ahead,
		session: r.session,
		ids:     r.ids,
		pending: make(map[string]*record),
	}
}

// look returns the node as it will be, for the caller to change.
func (pr *preparation) look(path string) (*record, error) {
	if path == "/" {
		path = ""
	}
	if r, ok := pr.pending[path]; ok {
		if r == nil {
			return nil, codeNoNode
		}
		return r, nil
	}
	r, ok := pr.ahead[path]
	if !ok {
		n, there := pr.tree.nodes[path]
		if there {
			r = &record{n.stat, n.acl, len(n.children)}
		}
	} else if r != nil {
		copied := *r
		r = &copied
	}
	if r == nil {
		return nil, codeNoNode
	}
	pr.pending[path] = r
	return r, nil
}

// removeOwned prepares the end of the session: its nodes go, sorted by path.
func (pr *preparation) removeOwned() {
	owned := make(map[string]struct{})
	for path := range pr.tree.ephemerals[pr.session] {
		owned[path] = struct{}{}
	}
	for path, r := range pr.ahead {
		if r != nil && r.stat.owner == pr.session {
			owned[path] = struct{}{}
		} else { // deleted; another session may have made one since
			delete(owned, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(owned)) {
		pr.remove(path)
	}
}

// remove prepares the deletion of a node that is there and has no children.
func (pr *preparation) remove(path string) {
	parentPath, _, _ := splitPath(path)
	if parent, err := pr.look(parentPath); err == nil {
		parent.children--
	}
	pr.pending[path] = nil
	pr.changes = append(pr.changes, change{op: OpDelete, path: path})
}

// add prepares one operation: one change, or a code.
func (pr *preparation) add(o operation) error {
	switch o.op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		return pr.create(o)
	case OpDelete:
		return pr.delete(o)
	case OpSetData, OpSetACL, OpCheck:
		return pr.alter(o)
	}
	return codeMarshallingError
}

func (pr *preparation) create(o operation) error {
	kind, err := kindOf(o)
	if err != nil {
		return err
	}
	parentPath, _, ok := splitPath(o.path)
	if !ok {
		return codeBadArguments
	}
	acl, err := fixACL(o.acl, pr.ids)
	if err != nil {
		return err
	}
	parent, err := pr.look(parentPath)
	if err != nil {
		return err
	}
	if !permitted(parent.acl, permCreate, pr.ids) {
		return codeNoAuth
	}
	path := o.path
	if kind.sequential {
		path += fmt.Sprintf("%010d", parent.stat.cversion)
	}
	if !validPath(path) {
		return codeBadArguments
	}
	if _, err := pr.look(path); err == nil {
		return codeNodeExists
	}
	if parent.stat.ephemeral() {
		return codeNoChildrenForEphemeral
	}
	owner := kind.owner
	if kind.ephemeral {
		owner = pr.session
	}
	parent.stat.cversion++
	parent.children++
	pr.pending[path] = &record{stat: nodeStat{owner: owner}, acl: acl}
	pr.changes = append(pr.changes, change{
		op: OpCreate, path: path, data: o.data, acl: acl, owner: owner, cversion: parent.stat.cversion,
	})
	return nil
}

func (pr *preparation) delete(o operation) error {
	parentPath, _, ok := splitPath(o.path)
	if !ok || special(o.path) {
		return codeBadArguments
	}
	parent, err := pr.look(parentPath)
	if err != nil {
		return err
	}
	if !permitted(parent.acl, permDelete, pr.ids) {
		return codeNoAuth
	}
	n, err := pr.look(o.path)
	switch {
	case err != nil:
		return err
	case o.version != -1 && o.version != n.stat.version:
		return codeBadVersion
	case n.children > 0:
		return codeNotEmpty
	}
	pr.remove(o.path)
	return nil
}

// alter prepares what leaves the node where it is.
func (pr *preparation) alter(o operation) error {
	if !validPath(o.path) {
		return codeBadArguments
	}
	c := change{op: o.op, path: o.path, data: o.data}
	perm := map[Op]int32{OpSetData: permWrite, OpSetACL: permAdmin, OpCheck: permRead}[o.op]
	if o.op == OpSetACL {
		var err error
		if c.acl, err = fixACL(o.acl, pr.ids); err != nil {
			return err
		}
	}
	n, err := pr.look(o.path)
	if err != nil {
		return err
	}
	if !permitted(n.acl, perm, pr.ids) {
		return codeNoAuth
	}
	version := &n.stat.version
	if o.op == OpSetACL {
		version = &n.stat.aversion
	}
	if o.version != -1 && o.version != *version {
		return codeBadVersion
	}
	c.version = *version + 1
	switch o.op {
	case OpSetData:
		n.stat.version = c.version
	case OpSetACL:
		n.stat.aversion, n.acl = c.version, c.acl
	}
	pr.changes = append(pr.changes, c)
	return nil
}

// nodeKind is what a create's flags ask for.
type nodeKind struct {
	ephemeral, sequential, ttl bool
	owner                      int64
}

// kindOf reads the flags. What becomes a container is decided by the request's
// own kind alone, and a TTL only goes with one and the right flags.
func kindOf(o operation) (nodeKind, error) {
	var k nodeKind
	switch o.flags {
	case 0, 4: // persistent, container
	case 1:
		k.ephemeral = true
	case 2:
		k.sequential = true
	case 3:
		k.ephemeral, k.sequential = true, true
	case 5:
		k.ttl = true
	case 6:
		k.ttl, k.sequential = true, true
	default:
		return k, codeBadArguments
	}
	if k.ttl != (o.op == OpCreateTTL) || k.ttl && (o.ttl <= 0 || o.ttl > ttlMax) {
		return k, codeBadArguments
	}
	switch o.op {
	case OpCreateContainer:
		k.ephemeral, k.owner = false, containerOwner
	case OpCreateTTL:
		k.owner = ttlMark | o.ttl
	}
	return k, nil
}
