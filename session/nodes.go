package session

import (
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// nodes counts the ephemeral nodes of a session: those it has, and those it has asked for. It
// protects the ensemble from too many, and is not exact while replies are lost.
type nodes struct {
	limit int

	mu      sync.Mutex
	pending int               // creates in flight
	paths   map[string]uint64 // each node, with the value of made when it was counted
	made    uint64            // how many were ever counted
	doubt   time.Time         // until then there may be uncounted nodes, because a reply was lost
	timeout func() time.Duration
}

// reserve makes room for one more node, or fails.
func (n *nodes) reserve() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.paths)+n.pending >= n.limit {
		return ErrTooManyNodes
	}
	n.pending++
	return nil
}

// release gives back a reservation when nothing was sent.
func (n *nodes) release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending--
}

// settle turns a reservation into a node, or into nothing if there is an error. It returns what
// noted returns for the node.
func (n *nodes) settle(path string, err error) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending--
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
		if !makesEphemeral(op) {
			continue
		}
		if err := n.reserve(); err != nil {
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
		switch {
		case makesEphemeral(op) && done:
			n.settle(results[i].String, nil)
		case makesEphemeral(op):
			n.settle("", err)
		case done:
			if gone, ok := op.(*zk.DeleteRequest); ok {
				n.deleted(gone.Path, noted[gone.Path])
			}
		}
	}
}

func makesEphemeral(op any) bool {
	c, ok := op.(*zk.CreateRequest)
	return ok && CreateMode{flag: c.Flags}.ephemeral()
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
	if n.paths[path] == noted {
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
