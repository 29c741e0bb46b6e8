package session

import (
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// nodes counts the ephemeral nodes of a session: those it has, and those it has
// asked for. It guards against too many, and is not exact while replies are lost.
type nodes struct {
	limit int

	mu      sync.Mutex
	pending int
	paths   map[string]struct{}
	doubt   time.Time // until then there may be nodes that are not counted: a reply was lost
	timeout func() time.Duration
}

// reserve makes room for one more, or fails.
func (n *nodes) reserve() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.paths)+n.pending >= n.limit {
		return ErrTooManyNodes
	}
	n.pending++
	return nil
}

// settle turns a reservation into a node, or into nothing if there is an error.
func (n *nodes) settle(path string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending--
	if err == nil {
		n.addLocked(path)
	}
	if Uncertain(err) {
		// Whoever asked for the node looks for it as soon as there is a connection. Without
		// one for a timeout the session is lost.
		n.doubt = wire.Now().Add(2 * n.timeout())
	}
}

// reserveOps makes room for the nodes that a multi is to make, or fails.
func (n *nodes) reserveOps(ops []any) error {
	for i, op := range ops {
		if !makesEphemeral(op) {
			continue
		}
		if err := n.reserve(); err != nil {
			n.settleOps(ops[:i], nil, err)
			return err
		}
	}
	return nil
}

// settleOps ends the reservations of reserveOps with the outcome of the multi, and takes
// what that has deleted off the count. The results have no chroot on their paths.
func (n *nodes) settleOps(ops []any, results []zk.MultiResponse, err error) {
	done := err == nil && len(results) == len(ops)
	for i, op := range ops {
		switch {
		case makesEphemeral(op) && done:
			n.settle(results[i].String, nil)
		case makesEphemeral(op):
			n.settle("", err)
		case done:
			if gone, ok := op.(*zk.DeleteRequest); ok {
				n.deleted(gone.Path)
			}
		}
	}
}

func makesEphemeral(op any) bool {
	c, ok := op.(*zk.CreateRequest)
	return ok && CreateMode{flag: c.Flags}.ephemeral()
}

// found adds a node whose create had looked lost.
func (n *nodes) found(path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addLocked(path)
}

func (n *nodes) addLocked(path string) {
	if n.paths == nil {
		n.paths = make(map[string]struct{})
	}
	n.paths[path] = struct{}{}
}

// deleted takes a node off the count; any path may be given.
func (n *nodes) deleted(path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.paths, path)
}

// has reports whether there is one. All that anybody holds is among them.
func (n *nodes) has() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.paths) > 0
}

// any reports whether there is one, or may be.
func (n *nodes) any(now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pending > 0 || len(n.paths) > 0 || now.Before(n.doubt)
}
