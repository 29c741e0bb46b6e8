package quorum

import (
	"strings"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// reads are the requests that a client's server answers from its own replica. They set watches only if
// the request was complete, and otherwise their result does not count.
var reads = map[int32]func(*Peer, *znode.Decoder) ([]byte, error){
	codec.OpExists:               exists,
	codec.OpGetData:              getData,
	codec.OpGetACL:               getACL,
	codec.OpGetChildren:          func(p *Peer, d *znode.Decoder) ([]byte, error) { return getChildren(p, d, false) },
	codec.OpGetChildren2:         func(p *Peer, d *znode.Decoder) ([]byte, error) { return getChildren(p, d, true) },
	codec.OpGetAllChildrenNumber: getAllChildrenNumber,
	codec.OpGetEphemerals:        getEphemerals,
	codec.OpWhoAmI:               whoAmI,
	codec.OpMultiRead:            multiRead,
	codec.OpSetWatches:           func(p *Peer, d *znode.Decoder) ([]byte, error) { return setWatches(p, d, false) },
	codec.OpSetWatches2:          func(p *Peer, d *znode.Decoder) ([]byte, error) { return setWatches(p, d, true) },
	codec.OpAddWatch:             addWatch,
	codec.OpCheckWatches:         checkWatches,
	codec.OpRemoveWatches:        removeWatches,
}

// readable finds a node and checks that the client has one of the permissions.
func (p *Peer) readable(path string, perms int32) (*znode.Node, error) {
	n, ok := p.view.tree.Nodes[path]
	if !ok {
		return nil, znode.CodeNoNode
	}
	if !znode.Permitted(n.ACL, perms, p.ids) {
		return nil, znode.CodeNoAuth
	}
	return n, nil
}

// exists sets its watch even if the node does not exist. Whether it needs a permission depends on the release.
func exists(p *Peer, d *znode.Decoder) ([]byte, error) {
	path, watch := d.String(), d.Bool()
	if d.Bad {
		return nil, znode.CodeMarshallingError
	}
	if strings.IndexByte(path, 0) >= 0 {
		return nil, znode.CodeBadArguments
	}
	n, ok := p.view.tree.Nodes[path]
	if ok && p.st.conf.Release.ExistsNeedsRead && !znode.Permitted(n.ACL, znode.PermRead, p.ids) {
		return nil, znode.CodeNoAuth
	}
	if watch {
		p.view.data.add(path, p, oneShot)
	}
	if !ok {
		return nil, znode.CodeNoNode
	}
	e := new(znode.Encoder)
	e.Stat(n.ClientStat())
	return e.B, nil
}

func getData(p *Peer, d *znode.Decoder) ([]byte, error) {
	path, watch := d.String(), d.Bool()
	if d.Bad {
		return nil, znode.CodeMarshallingError
	}
	n, err := p.readable(path, znode.PermRead)
	if err != nil {
		return nil, err
	}
	if watch {
		p.view.data.add(path, p, oneShot)
	}
	e := new(znode.Encoder)
	e.Buffer(n.Data)
	e.Stat(n.ClientStat())
	return e.B, nil
}

func getChildren(p *Peer, d *znode.Decoder, withStat bool) ([]byte, error) {
	path, watch := d.String(), d.Bool()
	if d.Bad {
		return nil, znode.CodeMarshallingError
	}
	n, err := p.readable(path, znode.PermRead)
	if err != nil {
		return nil, err
	}
	if watch {
		p.view.children.add(path, p, oneShot)
	}
	e := new(znode.Encoder)
	e.Strings(n.Names())
	if withStat {
		e.Stat(n.ClientStat())
	}
	return e.B, nil
}

func getACL(p *Peer, d *znode.Decoder) ([]byte, error) {
	n, err := p.readable(d.String(), znode.PermRead|znode.PermAdmin)
	if err != nil {
		return nil, err
	}
	acl := n.ACL
	if !znode.Permitted(acl, znode.PermAdmin, p.ids) {
		acl = znode.HideDigests(acl)
	}
	e := new(znode.Encoder)
	e.ACL(acl)
	e.Stat(n.ClientStat())
	return e.B, nil
}

func getAllChildrenNumber(p *Peer, d *znode.Decoder) ([]byte, error) {
	path := d.String()
	if _, err := p.readable(path, znode.PermRead); err != nil {
		return nil, err
	}
	e := new(znode.Encoder)
	e.Int32(int32(p.view.tree.CountBelow(path)))
	return e.B, nil
}

// getEphemerals returns the paths of the session's ephemeral nodes.
func getEphemerals(p *Peer, d *znode.Decoder) ([]byte, error) {
	prefix := d.String()
	if strings.TrimSpace(prefix) == "/" {
		prefix = ""
	}
	var paths []string
	for _, path := range p.view.tree.Owned(p.session) {
		if strings.HasPrefix(path, strings.TrimSpace(prefix)) {
			paths = append(paths, path)
		}
	}
	e := new(znode.Encoder)
	e.Strings(paths)
	return e.B, nil
}

func whoAmI(p *Peer, _ *znode.Decoder) ([]byte, error) {
	e := new(znode.Encoder)
	e.Int32(int32(len(p.ids)))
	for _, id := range p.ids {
		user := id.ID
		if id.Scheme == "digest" {
			user, _, _ = strings.Cut(user, ":")
		}
		e.String(id.Scheme)
		e.String(user)
	}
	return e.B, nil
}
