package room

import (
	"context"
	"slices"
	"sync"
)

// Account is the account of a session.
type Account struct {
	limit Size
	life  context.Context // of the session; its cause says why the session has ended

	// spare gives up places that are kept, the least recently used first, until they are of a size. It
	// reports whether there was one. It is nil if no place was ever kept. One goroutine calls it at a time.
	spare   func(Size) bool
	judging sync.Mutex // held while spare is called; before mu

	mu      sync.Mutex
	used    Size                      // by nodes, and the rest of reservations
	leaving Size                      // the part of used that will be free without anybody's help
	open    map[*Reservation]struct{} // those that have room and have not ended
	nodes   map[string]*Node          // that are there, by path
	unknown int                       // creates in flight or in doubt
	waiting []*asking                 // first come, first served
}

// New returns the account of a session that may own so much. life ends with the session.
func New(life context.Context, limit Size) *Account {
	return &Account{
		limit: limit, life: life,
		open: make(map[*Reservation]struct{}), nodes: make(map[string]*Node),
	}
}

// OnShortage sets the function that gives up places which are kept. It must not block.
func (a *Account) OnShortage(spare func(Size) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spare = spare
}

// Node is the room of one node, from before its create is sent until the node is certain to be gone.
type Node struct {
	size    Size
	of      *Reservation // gets the room back; nil once it has ended
	path    string       // of the node that is there
	state   nodeState
	leaving bool // the node, or that of the create in flight, is about to be deleted
}

type nodeState int8

const (
	unanswered nodeState = iota // the create is in flight, or its reply was lost
	counted                     // the node is there
	over                        // it is gone, or never was
)

// Reservation is room that is set aside for creates. One goroutine uses it at a time. a.mu guards what
// changes.
type Reservation struct {
	a       *Account
	over    <-chan struct{} // closed when its nodes are about to go: the context has ended for which it was made
	want    Size            // that its caller has asked for at first
	all     Size            // that was set aside; more than want while nodes are there that others take the place of
	free    Size            // the part of all that no node has
	leaving Size            // of its nodes
	nodes   []*Node         // whose room comes back to it
	ended   bool
}

func (v *Reservation) open() bool { return v != nil && !v.ended }

// excessLocked is what goes back to all, and not to the reservation, when nodes of it go.
func (v *Reservation) excessLocked() Size { return v.all.beyond(v.want) }

// addLocked has the room of a node come back to the reservation, as long as that is open.
func (v *Reservation) addLocked(n *Node) {
	v.nodes = append(v.nodes, n)
	n.of = v
}

// asking is a caller that waits for room.
type asking struct {
	ended   <-chan struct{} // closed when its context has ended: the caller is about to withdraw
	v       *Reservation
	need    Size          // that v has to have free
	granted Size          // the room that was set aside
	got     chan struct{} // closed then; nil if the caller did not have to wait
	look    chan struct{} // receives when the room may not come any more
}

// leavingLocked returns the sum that has the node while it is about to go.
func (a *Account) leavingLocked(n *Node) *Size {
	if n.of.open() {
		return &n.of.leaving
	}
	return &a.leaving
}

func (a *Account) stayLocked(n *Node) bool {
	if n == nil || !n.leaving {
		return false
	}
	n.leaving = false
	sum := a.leavingLocked(n)
	*sum = sum.minus(n.size)
	return true
}

// closeLocked takes note that a node is gone, or never was.
func (a *Account) closeLocked(n *Node) {
	if n.state == over {
		return
	}
	a.stayLocked(n)
	if n.state == unanswered {
		a.unknown--
	}
	if a.nodes[n.path] == n {
		delete(a.nodes, n.path)
	}
	n.state = over
	if n.of.open() {
		back := n.size.least(n.of.excessLocked())
		a.used, n.of.all = a.used.minus(back), n.of.all.minus(back)
		n.of.free = n.of.free.plus(n.size.minus(back))
		n.of.nodes = slices.DeleteFunc(n.of.nodes, func(o *Node) bool { return o == n })
		return
	}
	a.used = a.used.minus(n.size)
}

// countLocked counts a node at its path. A node that was counted there before is gone.
func (a *Account) countLocked(n *Node, path string) {
	if old := a.nodes[path]; old != nil && old != n {
		a.closeLocked(old)
	}
	if n.state == unanswered {
		a.unknown--
	}
	n.state, n.path = counted, path
	a.nodes[path] = n
}

// Has reports whether the session certainly has a node. The nodes of all held locks are counted.
func (a *Account) Has() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.nodes) > 0
}

// Any reports whether the session has a node, or may have one.
func (a *Account) Any() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unknown > 0 || len(a.nodes) > 0
}

// At returns what is counted at a path, which tells a node from earlier and later ones there, or nil. Call it
// before a delete is sent, and pass the result to Gone.
func (a *Account) At(path string) *Node {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nodes[path]
}
