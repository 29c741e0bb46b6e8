package session

import (
	"errors"
	"testing"
)

// The counter has the nodes and the bytes that there may be, whatever happens to a node. A node that is gone does not take the
// place of one that was made at its path since.
func TestRoom(t *testing.T) {
	r := &room{mostNodes: 3, mostBytes: 3*4 + len("/a/b/c"+"0123456789")}
	take := func(path string, sequential, fits bool) *place {
		t.Helper()
		p, err := r.take(path, sequential)
		if (err == nil) != fits || err != nil && !errors.Is(err, ErrTooManyNodes) {
			t.Errorf("%s: %v", path, err)
		}
		return p
	}
	a, b := take("/a", false, true), take("/b", false, true)
	take("/c", true, true) // its number counts
	take("/d", false, false)
	r.made(a, "/a")
	r.leave(a, true)
	r.leave(a, true)
	d := take("/d", false, true) // behind the delete
	r.leave(a, false)            // its answer was lost
	r.leave(a, false)
	if r.nodes != 4 || r.there.Load() != 1 || r.all.Load() != 4 {
		t.Errorf("%d nodes, %d there, %d in all", r.nodes, r.there.Load(), r.all.Load())
	}
	r.end(d)
	r.end(d)
	r.end(b)
	if take("/longer", false, false); r.nodes != 2 { // too many bytes, not too many nodes
		t.Errorf("%d nodes", r.nodes)
	}
	again := take("/a", false, true)
	r.made(again, "/a")
	r.end(a)
	if r.at("/a") != again || r.nodes != 2 || r.there.Load() != 1 {
		t.Errorf("%d nodes, %d there, the new one is forgotten: %v", r.nodes, r.there.Load(), r.at("/a") != again)
	}
	r.made(a, "/a") // the answer comes late
	if r.there.Load() != 1 {
		t.Errorf("%d nodes there", r.there.Load())
	}
}
