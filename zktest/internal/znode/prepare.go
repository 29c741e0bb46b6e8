package znode

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// A Preparation turns the operations of one request into changes. It checks each operation
// against the state that the earlier operations will leave, and changes nothing itself.
type Preparation struct {
	tree    *Tree
	ahead   map[string]*Record // by path, what outstanding proposals will leave; nil: deleted
	session int64
	ids     []Identity
	sasl    bool               // the server knows identities of that scheme
	Pending map[string]*Record // by path, what this request will leave; nil: deleted
	Changes []Change
}

// A Record is what later operations have to know of a node.
type Record struct {
	Stat     Stat
	ACL      []ACLEntry
	Children int
}

// Prepare begins the preparation of a request by a session with these identities. ahead
// holds the nodes that outstanding proposals will change. sasl says whether the server knows identities of that scheme.
func Prepare(t *Tree, ahead map[string]*Record, session int64, ids []Identity, sasl bool) *Preparation {
	return &Preparation{
		tree:    t,
		ahead:   ahead,
		session: session,
		ids:     ids,
		sasl:    sasl,
		Pending: make(map[string]*Record),
	}
}

// Look returns the node as it will be. The caller may change the record, which is the
// request's own. A node that will not exist is [CodeNoNode].
func (pr *Preparation) Look(path string) (*Record, error) {
	if path == "/" {
		path = ""
	}
	if r, ok := pr.Pending[path]; ok {
		if r == nil {
			return nil, CodeNoNode
		}
		return r, nil
	}
	r, ok := pr.ahead[path]
	if !ok {
		n, there := pr.tree.Nodes[path]
		if there {
			r = &Record{n.Stat, n.ACL, len(n.children)}
		}
	} else if r != nil {
		copied := *r
		r = &copied
	}
	if r == nil {
		return nil, CodeNoNode
	}
	pr.Pending[path] = r
	return r, nil
}

// RemoveOwned prepares the end of the session: it deletes the session's ephemeral nodes in the order of their paths.
func (pr *Preparation) RemoveOwned() {
	owned := make(map[string]struct{})
	for path := range pr.tree.Ephemerals[pr.session] {
		owned[path] = struct{}{}
	}
	for path, r := range pr.ahead {
		if r != nil && r.Stat.owner == pr.session {
			owned[path] = struct{}{}
		} else { // deleted, and perhaps created again by another session
			delete(owned, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(owned)) {
		pr.Remove(path)
	}
}

// Remove prepares the deletion of a node that exists and has no children.
func (pr *Preparation) Remove(path string) {
	parentPath, _, _ := SplitPath(path)
	if parent, err := pr.Look(parentPath); err == nil {
		parent.Children--
	}
	pr.Pending[path] = nil
	pr.Changes = append(pr.Changes, Change{Op: codec.OpDelete, Path: path})
}

// Add prepares one operation. It appends one change to Changes, or returns a [Code].
func (pr *Preparation) Add(o Operation) error {
	switch o.Op {
	case codec.OpCreate, codec.OpCreate2, codec.OpCreateContainer, codec.OpCreateTTL:
		return pr.create(o)
	case codec.OpDelete:
		return pr.delete(o)
	case codec.OpSetData, codec.OpSetACL, codec.OpCheck:
		return pr.alter(o)
	}
	return CodeMarshallingError
}

func (pr *Preparation) create(o Operation) error {
	kind, err := kindOf(o)
	if err != nil {
		return err
	}
	parentPath, _, ok := SplitPath(o.Path)
	if !ok {
		return CodeBadArguments
	}
	acl, err := FixACL(o.ACL, pr.ids, pr.sasl)
	if err != nil {
		return err
	}
	parent, err := pr.Look(parentPath)
	if err != nil {
		return err
	}
	if !Permitted(parent.ACL, PermCreate, pr.ids) {
		return CodeNoAuth
	}
	path := o.Path
	if kind.sequential {
		path += fmt.Sprintf("%010d", parent.Stat.Cversion)
	}
	if !validPath(path) {
		return CodeBadArguments
	}
	if _, err := pr.Look(path); err == nil {
		return codeNodeExists
	}
	if parent.Stat.ephemeral() {
		return codeNoChildrenForEphemeral
	}
	owner := kind.owner
	if kind.ephemeral {
		owner = pr.session
	}
	parent.Stat.Cversion++
	parent.Children++
	pr.Pending[path] = &Record{Stat: Stat{owner: owner}, ACL: acl}
	pr.Changes = append(pr.Changes, Change{
		Op: codec.OpCreate, Path: path, data: o.Data, acl: acl, owner: owner, cversion: parent.Stat.Cversion,
	})
	return nil
}

func (pr *Preparation) delete(o Operation) error {
	parentPath, _, ok := SplitPath(o.Path)
	if !ok || Reserved(o.Path) {
		return CodeBadArguments
	}
	parent, err := pr.Look(parentPath)
	if err != nil {
		return err
	}
	if !Permitted(parent.ACL, PermDelete, pr.ids) {
		return CodeNoAuth
	}
	n, err := pr.Look(o.Path)
	switch {
	case err != nil:
		return err
	case o.Version != -1 && o.Version != n.Stat.version:
		return codeBadVersion
	case n.Children > 0:
		return CodeNotEmpty
	}
	pr.Remove(o.Path)
	return nil
}

// alter prepares an operation that neither creates nor deletes: setData, setACL or check.
func (pr *Preparation) alter(o Operation) error {
	if !validPath(o.Path) {
		return CodeBadArguments
	}
	c := Change{Op: o.Op, Path: o.Path, data: o.Data}
	perm := map[int32]int32{codec.OpSetData: PermWrite, codec.OpSetACL: PermAdmin, codec.OpCheck: PermRead}[o.Op]
	if o.Op == codec.OpSetACL {
		var err error
		if c.acl, err = FixACL(o.ACL, pr.ids, pr.sasl); err != nil {
			return err
		}
	}
	n, err := pr.Look(o.Path)
	if err != nil {
		return err
	}
	if !Permitted(n.ACL, perm, pr.ids) {
		return CodeNoAuth
	}
	version := &n.Stat.version
	if o.Op == codec.OpSetACL {
		version = &n.Stat.aversion
	}
	if o.Version != -1 && o.Version != *version {
		return codeBadVersion
	}
	c.version = *version + 1
	switch o.Op {
	case codec.OpSetData:
		n.Stat.version = c.version
	case codec.OpSetACL:
		n.Stat.aversion, n.ACL = c.version, c.acl
	}
	pr.Changes = append(pr.Changes, c)
	return nil
}

// Reapable reports whether the server should delete a node by itself: a container that has
// become empty, or a node without children whose time to live is over.
func (pr *Preparation) Reapable(path string) bool {
	r, err := pr.Look(path)
	if err != nil || r.Children > 0 {
		return false
	}
	if n := pr.tree.Nodes[path]; n.Stat.hasTTL() {
		return time.Now().UnixMilli()-n.Stat.mtime > n.Stat.owner&MaxTTL
	}
	return r.Stat.Cversion > 0 // a container that never had a child stays
}
