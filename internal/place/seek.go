package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/kinds"
)

// seek finds out whether a create whose reply was lost has made the nodes. If it has, each
// attempt has its node and a listing. Of several nodes with its id, an attempt takes the first.
//
// The server first catches up with the leader. The session is still the same, and the servers close
// the lost connection when they accept the new one. So a node that is not there will hardly
// come. (If one server has read the create and is slow to apply it, decide removes the node.)
//
// CreateProtectedEphemeralSequential of go-zookeeper is no substitute: it does not sync, it goes on
// in a new session while the old session's node may still stand, and it panics at a child named
// _c_x.
func (all entrants) seek(ctx context.Context, tries int) (decide.Input, error) {
	for _, a := range all {
		a.doubt = true
	}
	first := all[0]
	if err := first.s.SharedSync(ctx, first.q.dir, first.creation.Syncs()); err != nil {
		return decide.Quit, err
	}
	if err := cmp.Or(all.each(entrant.seek)...); err != nil {
		return decide.Quit, err
	}
	n := 0
	for _, a := range all {
		if a.node.Name != "" {
			n++
		}
	}
	switch {
	case n == len(all):
		return decide.Found, nil
	case n > 0:
		return decide.Quit, errPartly
	}
	for _, a := range all {
		a.creation.Resolve("")
	}
	_, lost := first.creation.Result()
	if errors.Is(lost, core.ErrTooLong) {
		return decide.Quit, lost // the next try would break the connection again
	}
	traceRetry(ctx, first.q.hooks(), "create", tries, lost)
	return decide.NotFound, nil
}

// seek looks for the node in a listing.
func (a entrant) seek() (err error) {
	a.names, err = a.survey(a.ctx)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, n := range decide.ParseNodes(a.names, a.r.Kind.Prefixes...) {
		switch {
		case n.ID != a.id:
		case a.node.Name == "":
			made := path.Join(a.q.dir, n.Name)
			a.creation.Resolve(made)
			if a.failed = a.found(made); a.failed != nil {
				return nil
			}
		default:
			a.removeTwin(a.ctx, n)
		}
	}
	return nil
}

// found takes note of the path of our node.
func (a *attempt) found(made string) error {
	name := path.Base(made)
	n, ok := kinds.ParseNode(name, a.r.Kind.Prefixes...)
	if !ok {
		return fmt.Errorf("the server created %q when asked for %q", name, kinds.NodeName(a.id, a.r.Prefix, a.r.Weight, a.entry.Lazy))
	}
	a.node, a.path, a.entered = n, made, time.Now()
	if n.ID == a.id {
		a.id = n.ID // the same text, which the name holds already
	}
	if n.Sequence < 0 || n.Sequence == math.MaxInt32 {
		// The next numbers are the same again, or below all others.
		return fmt.Errorf("%w: it gave %d", ErrSequence, n.Sequence)
	}
	return nil
}

// removeTwin has a second node of ours removed, which a create whose reply was lost has made: it must block neither
// this contender nor those behind it.
func (a *attempt) removeTwin(ctx context.Context, n kinds.Node) {
	twin := path.Join(a.q.dir, n.Name)
	a.s.Adopt(nil, twin)
	a.s.Remove(ctx, twin)
}

// errPartly says that the reply to a transaction was lost, and that some of its nodes are there and
// others are not. The others were deleted, or the transaction was carried out between two looks.
var errPartly = errors.New("some of the nodes of one transaction are gone")
