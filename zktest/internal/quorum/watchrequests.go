package quorum

import "github.com/turnstile-go/turnstile/zktest/internal/znode"

// setWatches sets a client's watches again after it has reconnected, and sends the events since the last
// transaction that the client has seen.
func setWatches(p *Peer, d *znode.Decoder) ([]byte, error) {
	seen := d.Int64()
	data, exist, child := d.Strings(), d.Strings(), d.Strings()
	if d.Bad {
		return nil, znode.CodeMarshallingError
	}
	p.rewatch(seen, data, exist, child)
	return nil, nil
}

// setWatches2 is setWatches with persistent and recursive watches.
func setWatches2(p *Peer, d *znode.Decoder) ([]byte, error) {
	seen := d.Int64()
	data, exist, child := d.Strings(), d.Strings(), d.Strings()
	lasting, deep := d.Strings(), d.Strings()
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

// rewatch sends an event for each watch whose node has changed since the transaction seen, and sets the
// other watches. It does not check permissions, which ZooKeeper did not do for long either.
func (p *Peer) rewatch(seen int64, data, exist, child []string) {
	m := p.view
	for _, path := range data {
		n, ok := m.tree.Nodes[path]
		switch {
		case !ok:
			p.notify(znode.Event{Kind: znode.Deleted, Path: path})
		case n.Stat.Mzxid > seen:
			p.notify(znode.Event{Kind: znode.DataChanged, Path: path})
		default:
			m.data.add(path, p, oneShot)
		}
	}
	for _, path := range exist {
		if _, ok := m.tree.Nodes[path]; ok {
			p.notify(znode.Event{Kind: znode.Created, Path: path})
		} else {
			m.data.add(path, p, oneShot)
		}
	}
	for _, path := range child {
		n, ok := m.tree.Nodes[path]
		switch {
		case !ok:
			p.notify(znode.Event{Kind: znode.Deleted, Path: path})
		case n.Stat.Pzxid > seen:
			p.notify(znode.Event{Kind: znode.ChildrenChanged, Path: path})
		default:
			m.children.add(path, p, oneShot)
		}
	}
}

func (p *Peer) watchLasting(path string, mode watchMode) {
	p.view.data.add(path, p, mode)
	p.view.children.add(path, p, mode)
}

func addWatch(p *Peer, d *znode.Decoder) ([]byte, error) {
	path, mode := d.String(), d.Int32()
	if d.Bad || mode < 0 || mode > 1 {
		return nil, znode.CodeMarshallingError
	}
	p.watchLasting(path, persistent+watchMode(mode))
	e := new(znode.Encoder)
	e.Int32(int32(znode.CodeOK))
	return e.B, nil
}

// The kinds of watch in checkWatches and removeWatches.
const (
	childWatches int32 = 1
	dataWatches  int32 = 2
	anyWatches   int32 = 3
)

// chosen returns the path in a request and the tables of the watches that it is about.
func (p *Peer) chosen(d *znode.Decoder) (string, []*watchTable) {
	path, kind := d.String(), d.Int32()
	if d.Bad {
		return "", nil
	}
	switch kind {
	case childWatches:
		return path, []*watchTable{p.view.children}
	case dataWatches:
		return path, []*watchTable{p.view.data}
	case anyWatches:
		return path, []*watchTable{p.view.children, p.view.data}
	}
	return "", nil
}

func checkWatches(p *Peer, d *znode.Decoder) ([]byte, error) {
	path, tables := p.chosen(d)
	if tables == nil {
		return nil, znode.CodeMarshallingError
	}
	for _, t := range tables {
		if t.has(path, p) {
			return nil, nil
		}
	}
	return nil, znode.CodeNoWatcher
}

func removeWatches(p *Peer, d *znode.Decoder) ([]byte, error) {
	path, tables := p.chosen(d)
	if tables == nil {
		return nil, znode.CodeMarshallingError
	}
	found := false
	for _, t := range tables {
		if t.remove(path, p) {
			found = true
		}
	}
	if !found {
		return nil, znode.CodeNoWatcher
	}
	return nil, nil
}
