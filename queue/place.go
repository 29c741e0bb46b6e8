package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/session"
)

// place is what an attempt beside another lease knows of that one's node. The two nodes have one
// place in the queue, and one token: that of the first. The second node is younger than those
// who wait behind, so that its own transaction id would be above the token of the next holder.
type place struct {
	watch plumbing.Watch // on the node of the other lease; nil: its token was known

	known    bool
	token    int64
	tokenErr error
}

// checkBeside says what is wrong with a lease of a kind beside that of this attempt. Those who
// wait for the node go when it goes, unless their policy says that it may leave another.
func (a *attempt) checkBeside(kind *Kind) error {
	if kind.Unfair || kind.Configured != nil || a.policy.Replaces == nil || !a.policy.Replaces(a.node) {
		return fmt.Errorf("queue: %w: a %s lock cannot be taken beside %s, which leaves nothing in its place",
			session.ErrInvalid, kind.Name, a.node.Name)
	}
	sorted := func(k *Kind) []string { return slices.Compact(slices.Sorted(slices.Values(k.Prefixes))) }
	if !slices.Equal(sorted(kind), sorted(a.r.Kind)) {
		return fmt.Errorf("queue: %w: %s and %s locks have different prefixes, and cannot share a place",
			session.ErrInvalid, kind.Name, a.r.Kind.Name)
	}
	return nil
}

// askPlace asks for the token of the place, if it is not known, just before the create is sent:
// that takes no round trip of its own. The watch is shared with the turn of the other lease,
// which sets it sooner or later.
func (a *attempt) askPlace(ctx context.Context) (err error) {
	other := a.entry.beside.t
	select {
	case <-other.known:
		a.place = place{known: true, token: other.czxid, tokenErr: other.tokenErr}
	default:
		a.place.watch, err = plumbing.Of(a.s).StartWatch(ctx, other.info.Node)
	}
	return err
}

// learnPlace waits for the token of the place, or why there is none.
func (a *attempt) learnPlace(ctx context.Context) error {
	for !a.place.known {
		if err := a.until(ctx, a.place.watch.Ready()); err != nil {
			return err
		}
		_, stat, err := a.place.watch.Result()
		switch {
		case err == nil:
			a.place.known, a.place.token = true, stat.Czxid
		case errors.Is(err, zk.ErrConnectionClosed):
			if err := a.askPlace(ctx); err != nil {
				return err
			}
		case errors.Is(err, zk.ErrNoNode):
			return a.entry.beside.nodeGone()
		default:
			a.place.known, a.place.tokenErr = true, err
		}
	}
	return nil
}

// nodeGone returns why nothing can be taken beside a lease whose node is gone.
func (l *Lease) nodeGone() error {
	if err := l.Err(); err != nil {
		return err
	}
	l.t.loseNode()
	return fmt.Errorf("%w: so is what was to be taken beside it", session.ErrLost)
}
