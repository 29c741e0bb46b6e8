package zktest

import "strings"

// reads are the requests that a client's member answers from what it has. What
// they return counts only if the request was whole; watches are set only then.
var reads = map[Op]func(*peer, *decoder) ([]byte, error){
	OpExists:               exists,
	OpGetData:              getData,
	OpGetACL:               getACL,
	OpGetChildren:          getChildren,
	OpGetChildren2:         getChildren2,
	OpGetAllChildrenNumber: getAllChildrenNumber,
	OpGetEphemerals:        getEphemerals,
	OpWhoAmI:               whoAmI,
	OpMultiRead:            multiRead,
	OpSetWatches:           setWatches,
	OpSetWatches2:          setWatches2,
	OpAddWatch:             addWatch,
	OpCheckWatches:         checkWatches,
	OpRemoveWatches:        removeWatches,
}

// readable finds a node and checks that the client has one of the permissions.
func (p *peer) readable(path string, perms int32) (*node, error) {
	n, ok := p.view.tree.nodes[path]
	if !ok {
		return nil, codeNoNode
	}
	if !permitted(n.acl, perms, p.ids) {
		return nil, codeNoAuth
	}
	return n, nil
}

// exists needs no permission. Its watch stays when there is no node.
func exists(p *peer, d *decoder) ([]byte, error) {
	path, watch := d.String(), d.Bool()
	if d.Bad {
		return nil, codeMarshallingError
	}
	if strings.IndexByte(path, 0) >= 0 {
		return nil, codeBadArguments
	}
	if watch {
		p.view.data.add(path, p, oneShot)
	}
	n, ok := p.view.tree.nodes[path]
	if !ok {
		return nil, codeNoNode
	}
	e := new(encoder)
	e.stat(n.told())
	return e.B, nil
}

func getData(p *peer, d *decoder) ([]byte, error) {
	path, watch := d.String(), d.Bool()
	if d.Bad {
		return nil, codeMarshallingError
	}
	n, err := p.readable(path, permRead)
	if err != nil {
		return nil, err
	}
	if watch {
		p.view.data.add(path, p, oneShot)
	}
	e := new(encoder)
	e.Buffer(n.data)
	e.stat(n.told())
	return e.B, nil
}

func getChildren(p *peer, d *decoder) ([]byte, error) {
	n, err := children(p, d)
	if err != nil {
		return nil, err
	}
	e := new(encoder)
	e.Strings(n.names())
	return e.B, nil
}

func getChildren2(p *peer, d *decoder) ([]byte, error) {
	n, err := children(p, d)
	if err != nil {
		return nil, err
	}
	e := new(encoder)
	e.Strings(n.names())
	e.stat(n.told())
	return e.B, nil
}

// children is what getChildren and getChildren2 share.
func children(p *peer, d *decoder) (*node, error) {
	path, watch := d.String(), d.Bool()
	if d.Bad {
		return nil, codeMarshallingError
	}
	n, err := p.readable(path, permRead)
	if err == nil && watch {
		p.view.children.add(path, p, oneShot)
	}
	return n, err
}

func getACL(p *peer, d *decoder) ([]byte, error) {
	n, err := p.readable(d.String(), permRead|permAdmin)
	if err != nil {
		return nil, err
	}
	acl := n.acl
	if !permitted(acl, permAdmin, p.ids) {
		acl = hideDigests(acl)
	}
	e := new(encoder)
	e.acls(acl)
	e.stat(n.told())
	return e.B, nil
}

func getAllChildrenNumber(p *peer, d *decoder) ([]byte, error) {
	path := d.String()
	if _, err := p.readable(path, permRead); err != nil {
		return nil, err
	}
	e := new(encoder)
	e.Int32(int32(p.view.tree.below(path)))
	return e.B, nil
}

// getEphemerals returns the session's own nodes.
func getEphemerals(p *peer, d *decoder) ([]byte, error) {
	prefix := d.String()
	if strings.TrimSpace(prefix) == "/" {
		prefix = ""
	}
	var paths []string
	for _, path := range p.view.tree.owned(p.session) {
		if strings.HasPrefix(path, strings.TrimSpace(prefix)) {
			paths = append(paths, path)
		}
	}
	e := new(encoder)
	e.Strings(paths)
	return e.B, nil
}

func whoAmI(p *peer, _ *decoder) ([]byte, error) {
	e := new(encoder)
	e.Int32(int32(len(p.ids)))
	for _, id := range p.ids {
		user := id.id
		if id.scheme == "digest" {
			user, _, _ = strings.Cut(user, ":")
		}
		e.String(id.scheme)
		e.String(user)
	}
	return e.B, nil
}
