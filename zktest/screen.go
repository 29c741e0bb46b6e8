package zktest

// Here is what a server refuses by itself, before a request goes any further.

// throttled reports whether the server pretends to be too busy for the request.
func (m *member) throttled(r *request, frame []byte) bool {
	if m.st.throttle == nil || r.op == OpPing || r.op == OpClose {
		return false // these ZooKeeper never throttles
	}
	seen := parseRequest(frame)
	seen.Session, seen.At = r.session, r.from.last.at
	return m.st.throttle(seen)
}

// eagerCheck returns an error if [Server.SetEagerACL] is on and the client may not
// do this write, as far as this server knows. ZooKeeper alone never checks early.
func (m *member) eagerCheck(r *request) error {
	if !m.st.eagerACL || len(m.st.members) == 1 {
		return nil
	}
	d := *r.body // the leader reads it as well
	o := d.operation(r.op)
	perm, onParent := int32(0), false
	switch r.op {
	case OpCreate, OpCreate2:
		perm, onParent = permCreate, true
	case OpDelete:
		perm, onParent = permDelete, true
	case OpSetData:
		perm = permWrite
	case OpSetACL:
		perm = permAdmin
	}
	path := o.path
	if onParent {
		parent, _, ok := splitPath(path)
		if !ok || special(path) {
			return nil // the leader will say what is wrong
		}
		path = parent
	}
	if perm == 0 || d.Bad {
		return nil
	}
	if r.op != OpDelete && r.op != OpSetData {
		if _, err := fixACL(o.acl, r.ids); err != nil {
			return err
		}
	}
	if n, ok := m.tree.nodes[path]; ok && !permitted(n.acl, perm, r.ids) {
		return codeNoAuth
	}
	return nil
}
