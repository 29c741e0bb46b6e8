package place

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/kinds"
)

// quit leaves the queue, unless the attempt has left it already.
func (a *attempt) quit(ctx context.Context, why error) {
	if _, ok := a.step(decide.Quit); ok {
		a.leave(ctx, why)
	}
}

// leave is the only way out of the queue but a grant. It returns once the removal of the node, or
// of a node that a create under way may still make, has started. The removal needs no further
// call, and does not end with ctx.
func (a *attempt) leave(ctx context.Context, why error) {
	if old := a.entry.renews; old != nil {
		a.entry.renews = nil
		defer old.quit(ctx, why)
	}
	if shown := a.entry.Shown; shown != nil && ctx.Err() == nil {
		shown.view.Store(nil) // nothing tells it any more when a node ahead goes, and the next attempt has its own
	}
	if !a.created() {
		return
	}
	a.leaving()
	var removed <-chan struct{}
	if a.quiet() {
		removed = a.removeIfThere(ctx)
	} else {
		gone := make(chan struct{})
		removed = gone
		go func() {
			defer close(gone)
			<-a.creation.Answered()
			<-a.removeIfThere(ctx)
		}()
	}
	if awaitsRemoval(why) {
		select {
		case <-removed:
		case <-ctx.Done():
		}
	}
}

// leaving says that the node is about to go: others that need room may wait for it from now on.
func (a *attempt) leaving() {
	if a.creation != nil {
		a.creation.Leave()
	}
	if a.path != "" {
		a.s.Leaving(a.path)
	}
}

// quiet reports whether no create is in flight.
func (a *attempt) quiet() bool {
	if a.creation == nil {
		return true
	}
	select {
	case <-a.creation.Answered():
		return true
	default:
		return false
	}
}

// removeIfThere starts the removal of the node if there is one, or may be one, after the answer to the last create.
// It returns what is closed when there is none any more.
func (a *attempt) removeIfThere(ctx context.Context) <-chan struct{} {
	if a.mayStand() {
		return a.remove(ctx).Done()
	}
	a.giveBack()
	return closed
}

// giveBack removes the directory if this attempt has made it. The attempt has no node in it.
func (a *attempt) giveBack() {
	if a.founded {
		a.s.GiveBack(a.q.dir)
	}
}

// created reports whether a create was sent.
func (a *attempt) created() bool { return a.creation != nil || a.node.Name != "" }

// mayStand reports whether there is a node of ours, or may be one, after the answer to the last
// create.
func (a *attempt) mayStand() bool {
	if a.creation != nil {
		made, err := a.creation.Result()
		if err == nil {
			a.node, _ = kinds.ParseNode(path.Base(made), a.r.Kind.Prefixes...) // cannot fail: the name is ours
			a.path = made
		}
		a.doubt = a.doubt || core.Uncertain(err)
		if core.Uncertain(err) {
			a.unanswered = a.creation
		}
	}
	return a.node.Name != "" || a.doubt
}

// awaitsRemoval reports whether leave waits until the node is gone, as long as ctx allows.
func awaitsRemoval(why error) bool {
	switch {
	case errors.Is(why, ErrBusy), errors.Is(why, ErrConflict), errors.Is(why, core.ErrInvalid), errors.Is(why, zk.ErrNoAuth):
		return true // an acquisition that was answered leaves nothing that the next one could find
	}
	return false
}

// RestartFrom is the sequence number from which on the client that leaves the directory empty
// deletes it, so that counting starts again. The counter has 32 bits and a sign. Past its end,
// servers repeat a number or go negative, and two contenders can hold at once, whatever library
// they use. It is a variable for tests.
var RestartFrom int32 = 1 << 30

// remove deletes the node for certain. If the reply to a create was lost, it deletes all nodes
// with our id. ctx is for hooks alone.
func (a *attempt) remove(ctx context.Context) *core.Removal {
	return a.removeBy(ctx, a.s.Remove)
}

// removeBy is remove with another way to delete the node if its name is known.
func (n *place) removeBy(ctx context.Context, remove remover) *core.Removal {
	if n.node.Name == "" {
		return n.sweep(ctx, n.unanswered)
	}
	if n.doubt {
		n.sweep(ctx, nil)
	}
	r := remove(ctx, n.path)
	// Negative is past the end of the counter, not before its beginning.
	if n.node.Sequence >= RestartFrom || n.node.Sequence < 0 {
		go func() {
			<-r.Done()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.s.Timeout())
			defer cancel()
			_ = n.s.Delete(ctx, n.q.dir, -1) // fails if other nodes are there, or it is gone
		}()
	}
	return r
}

// sweep deletes all nodes with our id. lost is the create that may have made one, or nil.
func (n *place) sweep(ctx context.Context, lost *core.Creation) *core.Removal {
	ours := kinds.NodeName(n.id, "", 1, false)
	return n.s.Sweep(ctx, n.q.dir, func(name string) bool { return strings.HasPrefix(name, ours) }, lost)
}
