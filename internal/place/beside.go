package place

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/kinds"
)

// Beside takes another lease of the same queue next to l: at once, in the same session, with the same
// sequence number. It is for kinds whose Policy says, by Replaces, that one node may leave another in its
// place. If l is of a Local, its turn ends: the lock is not handed over after it.
func (l *Lease) Beside(ctx context.Context, r Request) (*Lease, error) {
	err := r.complete()
	if err == nil {
		err = l.t.checkBeside(r.Kind)
	}
	if err != nil {
		return nil, Failed("acquire", l.t.q.dir, err)
	}
	if l.t.by != nil && l.Err() == nil {
		// The next waiter of this process would hold together with the new lease.
		l.t.by.MakeLast()
	}
	return l.t.q.Acquisition(ctx, &r, &Entry{beside: l}).Finish()
}

// checkBeside returns an error if a lease of a kind must not share the place of this node. The
// waiters behind a node go when the node goes, unless their policy says that it may leave another
// node in its place.
func (n *place) checkBeside(kind *kinds.Kind) error {
	if kind.Configuration != nil || !n.replaces() {
		return fmt.Errorf("%w: a %s lock cannot be taken beside %s, which leaves nothing in its place",
			core.ErrInvalid, kind.Name, n.node.Name)
	}
	sorted := func(k *kinds.Kind) []string { return slices.Compact(slices.Sorted(slices.Values(k.Prefixes))) }
	if !slices.Equal(sorted(kind), sorted(n.r.Kind)) {
		return fmt.Errorf("%w: %s and %s locks have different prefixes, and cannot share a place",
			core.ErrInvalid, kind.Name, n.r.Kind.Name)
	}
	return nil
}

// replaces reports whether the node may leave another in its place.
func (n *place) replaces() bool {
	p, err := decide.RuleOf(n.r.Kind, n.node, kinds.Config{})
	return err == nil && p.Replaces != nil && p.Replaces(n.node)
}

// sharePlace learns the token of the place that is shared with a lease. A listing that shows both
// nodes proves that ours was there before the next contender could go.
func (a *attempt) sharePlace(ctx context.Context, names []string) error {
	other := a.entry.beside
	if !slices.Contains(names, other.t.node.Name) {
		return other.nodeGone()
	}
	return a.learnPlace(ctx)
}

// askPlace asks for the token of the place, if it is not known. The request is sent just before
// the create, so it takes no round trip of its own. The turn of the other lease shares the
// watch, which it would set sooner or later.
func (a *attempt) askPlace(ctx context.Context) (err error) {
	other := a.entry.beside.t
	if other.known.Has() {
		a.seat = &seat{known: true, token: other.token, tokenErr: other.tokenErr}
		return nil
	}
	a.seat = &seat{}
	a.seat.watch, err = a.s.StartWatch(ctx, other.path)
	return err
}

// learnPlace waits until the token of the place is known, or the reason why there is none.
func (a *attempt) learnPlace(ctx context.Context) error {
	for !a.seat.known {
		if err := a.until(ctx, a.seat.watch.Ready()); err != nil {
			return err
		}
		_, stat, err := a.seat.watch.Result()
		switch {
		case err == nil:
			a.seat.known, a.seat.token = true, stat.Czxid
		case errors.Is(err, zk.ErrConnectionClosed):
			if err := a.askPlace(ctx); err != nil {
				return err
			}
		case errors.Is(err, zk.ErrNoNode):
			return a.entry.beside.nodeGone()
		default:
			a.seat.known, a.seat.tokenErr = true, err
		}
	}
	return nil
}

// nodeGone returns the reason why no lease can be taken beside a lease whose node is gone.
func (l *Lease) nodeGone() error {
	if err := l.Err(); err != nil {
		return err
	}
	l.t.loseNode()
	return fmt.Errorf("%w: the node of the lease to share a place with is gone", core.ErrLost)
}
