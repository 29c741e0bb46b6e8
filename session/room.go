package session

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// room counts the ephemeral nodes of a session, and the bytes of their paths: see WithNodeLimits.
type room struct {
	mostNodes, mostBytes int

	there atomic.Int64 // nodes that are known to be there
	all   atomic.Int64 // and the creates in flight or in doubt

	mu           sync.Mutex
	nodes, bytes int // all, less those whose delete is in flight
	byPath       map[string]*place
}

// place is the room of one node, from before its create is sent until it is certain to be gone. It may be nil.
type place struct {
	bytes   int
	path    string // "" if not known
	gone    bool
	leaving bool // its delete is in flight
	refused bool // further deletes make no room until they are answered
}

// take takes the room of a new node. In the transaction, a path has four bytes for its length.
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

// leave gives the room of a node whose delete a connection has taken to creates behind it. Any earlier, a create
// could get ahead of the delete. If that has failed meanwhile, leave does nothing.
func (r *room) leave(p *place, failed *bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p != nil && !p.gone && !p.leaving && !p.refused && !*failed {
		p.leaving = true
		r.nodes, r.bytes = r.nodes-1, r.bytes-p.bytes
	}
}

// stay takes leave back: the delete was refused, or its answer was lost.
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

// end notes that a node is gone. A later node at its path stays.
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

func (r *room) at(path string) *place {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byPath[path]
}
