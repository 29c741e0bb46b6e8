package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"
	"github.com/turnstile-go/turnstile/internal/plumbing"
)

// enter creates the node, and returns a listing that was made after that.
//
// The create and the listing are sent together. It does not matter which of them the server
// handles first, since a listing counts only if it shows the node.
func (a *attempt) enter(ctx context.Context) ([]string, error) {
	for tries := 1; ; tries++ {
		names, listErr, err := a.send(ctx)
		if err != nil {
			return nil, err
		}
		made, err := a.creation.Result()
		switch {
		case err == nil:
			if err := a.found(path.Base(made)); err != nil {
				return nil, err
			}
			if listErr == nil && slices.Contains(names, a.node.Name) {
				return names, nil
			}
			return a.list(ctx)
		case errors.Is(err, zk.ErrNoNode) && a.entry.renews != nil:
			return nil, errDeleted // the node that was to be replaced
		case errors.Is(err, zk.ErrNoNode):
			// There is no directory. It can vanish at any moment while it is empty.
			if err := plumbing.Of(a.s).MakeParents(ctx, a.q.dir); err != nil {
				return nil, err
			}
		case errors.Is(err, zk.ErrConnectionClosed):
			names, lookupErr := a.lookup(ctx)
			if lookupErr != nil || a.node.Name != "" {
				return names, lookupErr
			}
			traceRetry(ctx, a.q.hooks(), "create", tries, err)
		default:
			return nil, err
		}
		if err := a.slow(ctx, false); err != nil {
			return nil, err
		}
	}
}

// send sends the create and a listing together, and waits for the answers to both. listErr is the
// error of the listing. That of the create is in a.creation.
func (a *attempt) send(ctx context.Context) (names []string, listErr, err error) {
	if a.entry.beside != nil {
		if err := a.askPlace(ctx); err != nil {
			return nil, nil, err
		}
	}
	name, flags := a.newName()
	creation, err := a.startCreate(ctx, name, flags)
	if err != nil {
		return nil, nil, err
	}
	if a.creation == nil {
		a.after = creation.After()
	}
	a.creation = creation
	names, listErr = a.survey(ctx)
	if err := a.until(ctx, creation.Done()); err != nil {
		return nil, nil, err
	}
	if a.entry.placed != nil {
		a.entry.placed()
	}
	return names, listErr, nil
}

// newName returns the name to create, and the flags of the create. A node that shares or renews a
// place has the sequence number of that place. Otherwise the server gives the number.
func (a *attempt) newName() (string, int32) {
	name := nameFor(a.id, a.r.Prefix, a.r.Weight)
	var other *attempt
	switch {
	case a.entry.beside != nil:
		other = a.entry.beside.t.a
	case a.entry.renews != nil:
		other = a.entry.renews
	default:
		return name, zk.FlagEphemeralSequential
	}
	return fmt.Sprintf("%s%010d", name, other.node.Sequence), zk.FlagEphemeral
}

// lookup finds out whether a create whose reply was lost has made the node. If it has, lookup
// sets a.node, and returns a listing. Of several nodes it takes the first.
//
// The server first catches up with the leader. The session is still the same, and the servers close
// the lost connection when they accept the new one. So a node that is not there will hardly
// come. (If one server has read the create and is slow to apply it, decide removes the node.)
//
// CreateProtectedEphemeralSequential of zk.Conn is no substitute: it does not sync, it goes on
// in a new session while the old session's node may still stand, and it panics at a child named
// _c_x.
func (a *attempt) lookup(ctx context.Context) ([]string, error) {
	a.doubt = true
	if err := a.s.Sync(ctx, a.q.dir); err != nil {
		return nil, err
	}
	names, err := a.survey(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, n := range parseNodes(names, a.r.Kind.Prefixes...) {
		switch {
		case n.ID != a.id:
		case a.node.Name == "":
			if err := a.found(n.Name); err != nil {
				return nil, err
			}
			plumbing.Of(a.s).Adopt(a.nodePath())
		default:
			a.isTwin(ctx, n)
		}
	}
	return names, nil
}

// found takes note of the name of our node.
func (a *attempt) found(name string) error {
	n, ok := ParseNode(name, a.r.Kind.Prefixes...)
	if !ok {
		return fmt.Errorf("the server created %q when asked for %q", name, nameFor(a.id, a.r.Prefix, a.r.Weight))
	}
	a.node = n
	if n.Sequence < 0 || n.Sequence == math.MaxInt32 {
		// The next numbers are the same again, or below all others.
		return fmt.Errorf("%w: it gave %d", ErrSequence, n.Sequence)
	}
	return nil
}

// isTwin reports whether n is a second node of ours, made by a create whose reply was lost. It
// has the twin removed: it must block neither this contender nor those behind it.
func (a *attempt) isTwin(ctx context.Context, n Node) bool {
	if n.ID != a.id || n.Name == a.node.Name {
		return false
	}
	plumbing.Of(a.s).Remove(ctx, path.Join(a.q.dir, n.Name))
	return true
}
