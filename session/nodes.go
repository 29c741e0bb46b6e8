package session

import (
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// nodes counts the ephemeral nodes of a session, and the bytes of their paths: those it has, and those it has asked
// for. It protects the ensemble: when the session ends, one transaction lists all of these paths, and servers write it
// at any length but cannot read a long one. It is not exact while replies are lost.
type nodes struct {
	limit  int // of nodes
	most   int // bytes of their paths
	chroot int // bytes of the chroot, which the paths here lack

	mu      sync.Mutex
	pending int               // creates in flight
	asked   int               // the bytes of their paths
	bytes   int               // of the paths below
	paths   map[string]uint64 // each node, with the value of made when it was counted
	made    uint64            // how many were ever counted
	doubt   time.Time         // until then there may be uncounted nodes, because a reply was lost
	timeout func() time.Duration
}

// sequenceDigits is how long the number is that a server adds to the path of a sequential node.
const sequenceDigits = 10

// sizeOf returns the bytes that a node takes in the transaction that ends its session: the length of its path in four
// bytes, and the path.
func (n *nodes) sizeOf(path string) int { return 4 + n.chroot + len(path) }

// sizeOfNew returns the same for a node that is to be created.
func (n *nodes) sizeOfNew(path string, m CreateMode) int {
	if m.sequential() {
		return n.sizeOf(path) + sequenceDigits
	}
	return n.sizeOf(path)
}

// reserve makes room for one more node of a size, or fails.
func (n *nodes) reserve(size int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.paths)+n.pending >= n.limit {
		return ErrTooManyNodes
	}
	if all := n.bytes + n.asked; all+size > n.most {
		return fmt.Errorf("%w: the paths of its nodes have %d bytes, and may have %d (WithMaxNodeBytes)", ErrTooManyNodes, all, n.most)
	}
	n.pending++
	n.asked += size
	return nil
}

// release gives back a reservation when nothing was sent.
func (n *nodes) release(size int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending--
	n.asked -= size
}

// settle turns a reservation into a node, or into nothing if there is an error. It returns what
// noted returns for the node.
func (n *nodes) settle(size int, path string, err error) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending--
	n.asked -= size
	if err == nil {
		n.addLocked(path)
	}
	if uncertain(err) {
		// The caller looks for the node as soon as there is a connection. If there is none
		// for a timeout, the session is lost.
		n.doubt = wire.Now().Add(2 * n.timeout())
	}
	return n.paths[path]
}

// reserveOps makes room for the nodes that a multi creates, or fails.
func (n *nodes) reserveOps(ops []any) error {
	for i, op := range ops {
		size, ok := n.sizeOfOp(op)
		if !ok {
			continue
		}
		if err := n.reserve(size); err != nil {
			n.settleOps(ops[:i], nil, nil, err)
			return err
		}
	}
	return nil
}

// notedOps returns noted for each node that a multi deletes.
func (n *nodes) notedOps(ops []any) map[string]uint64 {
	noted := make(map[string]uint64)
	for _, op := range ops {
		if gone, ok := op.(*zk.DeleteRequest); ok {
			noted[gone.Path] = n.noted(gone.Path)
		}
	}
	return noted
}

// settleOps ends the reservations of reserveOps with the outcome of the multi, and uncounts the
// nodes that the multi has deleted. The paths in results have no chroot.
func (n *nodes) settleOps(ops []any, noted map[string]uint64, results []zk.MultiResponse, err error) {
	done := err == nil && len(results) == len(ops)
	for i, op := range ops {
		size, makes := n.sizeOfOp(op)
		switch {
		case makes && done:
			n.settle(size, results[i].String, nil)
		case makes:
			n.settle(size, "", err)
		case done:
			if gone, ok := op.(*zk.DeleteRequest); ok {
				n.deleted(gone.Path, noted[gone.Path])
			}
		}
	}
}

// sizeOfOp returns the size of the ephemeral node that an operation of a multi makes, if it makes one.
func (n *nodes) sizeOfOp(op any) (size int, makes bool) {
	c, ok := op.(*zk.CreateRequest)
	if !ok || !(CreateMode{flag: c.Flags}).ephemeral() {
		return 0, false
	}
	return n.sizeOfNew(c.Path, CreateMode{flag: c.Flags}), true
}

// found counts a node whose create had seemed to fail.
func (n *nodes) found(path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addLocked(path)
}

func (n *nodes) addLocked(path string) {
	if n.paths == nil {
		n.paths = make(map[string]uint64)
	}
	if n.paths[path] == 0 {
		n.bytes += n.sizeOf(path)
	}
	n.made++
	n.paths[path] = n.made
}

// noted returns a number that tells the node counted at a path now from earlier and later ones
// there, or 0 if there is none. Call it before a delete is sent, and pass the result to deleted.
func (n *nodes) noted(path string) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.paths[path]
}

// deleted uncounts a node. It leaves a node that was created at the same path since then, because
// replies reach the goroutines that wait for them in any order.
func (n *nodes) deleted(path string, noted uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.paths[path] == noted && noted != 0 {
		n.bytes -= n.sizeOf(path)
		delete(n.paths, path)
	}
}

// has reports whether the session certainly has a node. The nodes of all held locks are counted.
func (n *nodes) has() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.paths) > 0
}

// any reports whether the session has a node, or may have one.
func (n *nodes) any(now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pending > 0 || len(n.paths) > 0 || now.Before(n.doubt)
}
