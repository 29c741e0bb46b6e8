package session

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// room counts the ephemeral nodes of a session, and the bytes of their paths. When a session ends, a server deletes its
// nodes in one transaction, and one that is too large has brought ensembles down.
type room struct {
	mostNodes, mostBytes int

	there atomic.Int64 // how many nodes there are, as far as that is known
	all   atomic.Int64 // these, and the creates in flight or in doubt

	mu           sync.Mutex
	nodes, bytes int // all, less those whose delete has left on the present connection
	byPath       map[string]*place
}

// place is the room of one node, from before its create is sent until the node is certain to be gone. A nil place is
// that of a node which nobody counts.
type place struct {
	bytes   int
	path    string // "" while that is not known
	gone    bool
	leaving bool // its delete has left
	refused bool // and it was refused: the next one makes no room, since each of many would
}

// take takes the room of a node that is to be created. full has the chroot. The transaction that ends the session has
// the length of each path in four bytes.
func (r *room) take(full string, sequential bool) (*place, error) {
	p := &place{bytes: 4 + len(full)}
	if sequential {
		p.bytes += len("0123456789")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.nodes >= r.mostNodes:
		return nil, fmt.Errorf("%w: the session owns %d (WithNodeLimits)", ErrTooManyNodes, r.nodes)
	case r.bytes+p.bytes > r.mostBytes:
		return nil, fmt.Errorf("%w: their paths have %d of %d bytes (WithNodeLimits)", ErrTooManyNodes, r.bytes, r.mostBytes)
	}
	r.all.Add(1)
	r.nodes, r.bytes = r.nodes+1, r.bytes+p.bytes
	return p, nil
}

// made notes that the node is there.
func (r *room) made(p *place, path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.gone || p.path != "" {
		return
	}
	if r.byPath == nil {
		r.byPath = make(map[string]*place)
	}
	p.path, r.byPath[path] = path, p
	r.there.Add(1)
}

// leave notes that a connection has taken the delete of a node: what is created behind it there finds the room. A
// create that found the room before could get ahead of the delete. If the delete has failed meanwhile, leave does
// nothing.
func (r *room) leave(p *place, failed *bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p != nil && !p.gone && !p.leaving && !p.refused && !*failed {
		p.leaving = true
		r.nodes, r.bytes = r.nodes-1, r.bytes-p.bytes
	}
}

// stay takes leave back, because the delete was refused, or its connection has ended before the answer.
func (r *room) stay(p *place, failed *bool, refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*failed = true
	if p == nil || p.gone {
		return
	}
	p.refused = p.refused || refused
	if p.leaving {
		p.leaving = false
		r.nodes, r.bytes = r.nodes+1, r.bytes+p.bytes
	}
}

// end notes that a node is gone, or never was. A node that was created at the same path since then stays.
func (r *room) end(p *place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p == nil || p.gone {
		return
	}
	p.gone = true
	r.all.Add(-1)
	if !p.leaving {
		r.nodes, r.bytes = r.nodes-1, r.bytes-p.bytes
	}
	if p.path != "" {
		r.there.Add(-1)
	}
	if r.byPath[p.path] == p {
		delete(r.byPath, p.path)
	}
}

// at returns the node at a path, or nil.
func (r *room) at(path string) *place {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byPath[path]
}
