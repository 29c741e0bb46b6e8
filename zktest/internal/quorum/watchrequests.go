package quorum

import (
	"slices"

	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// setWatches sets a client's watches again after it has reconnected, and sends the events since the last
// transaction that the client has seen. setWatches2 has persistent and
// recursive watches too.
func setWatches(p *Peer, d *znode.Decoder, two bool) ([]byte, error) {
	seen := d.Int64()
	data, exist, child := d.Strings(), d.Strings(), d.Strings()
	var lasting, deep []string
	if two {
		lasting, deep = d.Strings(), d.Strings()
	}
	if d.Bad {
		return nil, znode.CodeMarshallingError
	}
	p.rewatch(seen, data, exist, child)
	for _, path := range lasting {
		p.watchLasting(path, persistent)
	}
	for _, path := range deep {
		p.watchLasting(path, recursive)
	}
	return nil, nil
}

// rewatch sends an event for each watch whose node has changed since the transaction seen, and sets the other watches.
func (p *Peer) rewatch(seen int64, data, exist, child []string) {
	again := func(t *watchTable, paths []string, kind znode.EventKind, changed func(znode.Stat) int64) {
		for _, path := range paths {
			n, ok := p.view.tree.Nodes[path]
			switch {
			case !ok:
				p.notify(znode.Event{Kind: znode.Deleted, Path: path}, noZxid)
			case changed(n.Stat) > seen:
				p.notifyReader(n, znode.Event{Kind: kind, Path: path})
			default:
				t.add(path, p, oneShot)
			}
		}
	}
	again(p.view.data, data, znode.DataChanged, func(s znode.Stat) int64 { return s.Mzxid })
	for _, path := range exist {
		if n, ok := p.view.tree.Nodes[path]; ok {
			p.notifyReader(n, znode.Event{Kind: znode.Created, Path: path})
		} else {
			p.view.data.add(path, p, oneShot)
		}
	}
	again(p.view.children, child, znode.ChildrenChanged, func(s znode.Stat) int64 { return s.Pzxid })
}

// notifyReader sends the event of a watch that is set again on a node that is there. ZooKeeper did not check
// permissions for long. Since it does, a client that may not read the node gets no event, and no watch either.
func (p *Peer) notifyReader(n *znode.Node, e znode.Event) {
	if !p.st.conf.Release.RewatchNeedsRead || znode.Permitted(n.ACL, znode.PermRead, p.ids) {
		p.notify(e, noZxid)
	}
}

func (p *Peer) watchLasting(path string, mode watchModes) {
	p.view.data.add(path, p, mode)
	if mode != recursive || !p.st.conf.Release.WatchModes {
		p.view.children.add(path, p, mode)
	}
}

func addWatch(p *Peer, d *znode.Decoder) ([]byte, error) {
	path, mode := d.String(), d.Int32()
	if d.Bad || mode < 0 || mode > 1 {
		return nil, znode.CodeMarshallingError
	}
	p.watchLasting(path, persistent<<mode)
	e := new(znode.Encoder)
	e.Int32(int32(znode.CodeOK))
	return e.B, nil
}

// The kinds of watch in checkWatches and removeWatches. The last two need a release with WatchModes.
const (
	childWatches      int32 = 1
	dataWatches       int32 = 2
	anyWatches        int32 = 3
	persistentWatches int32 = 4
	recursiveWatches  int32 = 5
)

// chosen returns what a request about watches is about: the path, the tables, and the modes. There are no
// tables if the request is malformed.
func (p *Peer) chosen(d *znode.Decoder) (path string, tables []*watchTable, modes watchModes) {
	path, kind := d.String(), d.Int32()
	if d.Bad {
		return "", nil, 0
	}
	child, data, byMode := p.view.children, p.view.data, p.st.conf.Release.WatchModes
	modes = anyMode
	if byMode {
		modes = oneShot
	}
	switch {
	case kind == childWatches:
		return path, []*watchTable{child}, modes
	case kind == dataWatches:
		return path, []*watchTable{data}, modes
	case kind == anyWatches:
		return path, []*watchTable{child, data}, anyMode
	case kind == persistentWatches && byMode:
		return path, []*watchTable{child, data}, persistent
	case kind == recursiveWatches && byMode:
		return path, []*watchTable{data}, recursive
	}
	return "", nil, 0
}

func checkWatches(p *Peer, d *znode.Decoder) ([]byte, error) {
	path, tables, modes := p.chosen(d)
	if tables == nil {
		return nil, znode.CodeMarshallingError
	}
	if !slices.ContainsFunc(tables, func(t *watchTable) bool { return t.byPath[path][p]&modes != 0 }) {
		return nil, znode.CodeNoWatcher
	}
	return nil, nil
}

func removeWatches(p *Peer, d *znode.Decoder) ([]byte, error) {
	path, tables, modes := p.chosen(d)
	if tables == nil {
		return nil, znode.CodeMarshallingError
	}
	found := false
	for _, t := range tables {
		found = t.remove(path, p, modes) || found
	}
	if !found {
		return nil, znode.CodeNoWatcher
	}
	return nil, nil
}
