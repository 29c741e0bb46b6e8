package zktest

// setWatches sets a client's watches again after it has reconnected, and tells
// it what has happened since the last transaction it has seen.
func setWatches(p *peer, d *decoder) ([]byte, error) {
	seen := d.Int64()
	data, exist, child := d.Strings(), d.Strings(), d.Strings()
	if d.Bad {
		return nil, codeMarshallingError
	}
	p.rewatch(seen, data, exist, child)
	return nil, nil
}

// setWatches2 also has the watches that last.
func setWatches2(p *peer, d *decoder) ([]byte, error) {
	seen := d.Int64()
	data, exist, child := d.Strings(), d.Strings(), d.Strings()
	lasting, deep := d.Strings(), d.Strings()
	if d.Bad {
		return nil, codeMarshallingError
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

// rewatch tells of what is new to the client, and watches the rest. It does not
// ask who may read what it tells of; nor did ZooKeeper for long.
func (p *peer) rewatch(seen int64, data, exist, child []string) {
	m := p.view
	for _, path := range data {
		n, ok := m.tree.nodes[path]
		switch {
		case !ok:
			p.notify(nodeEvent{kind: nodeDeleted, path: path})
		case n.stat.mzxid > seen:
			p.notify(nodeEvent{kind: nodeDataChanged, path: path})
		default:
			m.data.add(path, p, oneShot)
		}
	}
	for _, path := range exist {
		if _, ok := m.tree.nodes[path]; ok {
			p.notify(nodeEvent{kind: nodeCreated, path: path})
		} else {
			m.data.add(path, p, oneShot)
		}
	}
	for _, path := range child {
		n, ok := m.tree.nodes[path]
		switch {
		case !ok:
			p.notify(nodeEvent{kind: nodeDeleted, path: path})
		case n.stat.pzxid > seen:
			p.notify(nodeEvent{kind: nodeChildrenChanged, path: path})
		default:
			m.children.add(path, p, oneShot)
		}
	}
}

func (p *peer) watchLasting(path string, mode watchMode) {
	p.view.data.add(path, p, mode)
	p.view.children.add(path, p, mode)
}

func addWatch(p *peer, d *decoder) ([]byte, error) {
	path, mode := d.String(), d.Int32()
	if d.Bad || mode < 0 || mode > 1 {
		return nil, codeMarshallingError
	}
	p.watchLasting(path, persistent+watchMode(mode))
	e := new(encoder)
	e.Int32(int32(codeOK))
	return e.B, nil
}

// Kinds of watch in checkWatches and removeWatches.
const (
	childWatches int32 = 1
	dataWatches  int32 = 2
	anyWatches   int32 = 3
)

// chosen returns the tables that a request means.
func (p *peer) chosen(d *decoder) (string, []*watchTable) {
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

func checkWatches(p *peer, d *decoder) ([]byte, error) {
	path, tables := p.chosen(d)
	if tables == nil {
		return nil, codeMarshallingError
	}
	for _, t := range tables {
		if t.has(path, p) {
			return nil, nil
		}
	}
	return nil, codeNoWatcher
}

func removeWatches(p *peer, d *decoder) ([]byte, error) {
	path, tables := p.chosen(d)
	if tables == nil {
		return nil, codeMarshallingError
	}
	found := false
	for _, t := range tables {
		if t.remove(path, p) {
			found = true
		}
	}
	if !found {
		return nil, codeNoWatcher
	}
	return nil, nil
}
