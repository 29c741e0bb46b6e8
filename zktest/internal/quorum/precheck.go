package quorum

import (
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// throttled reports whether the server refuses the request as if it were too busy.
func (m *Member) throttled(r *request, frame []byte) bool {
	if m.st.Throttle == nil || r.op == codec.OpPing || r.op == codec.OpClose {
		return false // as in ZooKeeper
	}
	return m.st.Throttle(frame, r.session, r.from.last.at)
}

// eagerCheck returns an error if EagerACL is on and, as far as this server knows, the client may not
// make this write. Like ZooKeeper's, a server alone never checks early.
func (m *Member) eagerCheck(r *request) error {
	if !m.st.EagerACL || len(m.st.members) == 1 {
		return nil
	}
	d := *r.body // a copy, because the leader reads the body, too
	o := d.Operation(r.op)
	perm, onParent := int32(0), false
	switch r.op {
	case codec.OpCreate, codec.OpCreate2:
		perm, onParent = znode.PermCreate, true
	case codec.OpDelete:
		perm, onParent = znode.PermDelete, true
	case codec.OpSetData:
		perm = znode.PermWrite
	case codec.OpSetACL:
		perm = znode.PermAdmin
	}
	path := o.Path
	if onParent {
		parent, _, ok := znode.SplitPath(path)
		if !ok || znode.Reserved(path) {
			return nil // the leader will say what is wrong
		}
		path = parent
	}
	if perm == 0 || d.Bad {
		return nil
	}
	if r.op != codec.OpDelete && r.op != codec.OpSetData {
		if _, err := znode.FixACL(o.ACL, r.ids, m.st.conf.Passwords != nil); err != nil {
			return err
		}
	}
	if n, ok := m.tree.Nodes[path]; ok && !znode.Permitted(n.ACL, perm, r.ids) {
		return znode.CodeNoAuth
	}
	return nil
}
