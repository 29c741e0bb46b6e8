package place

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/kinds"
)

// A configuration can be made stricter while contenders hold and wait: the limit of a semaphore is
// lowered, for example. The new configuration counts from then on, but holders may have gone by
// the former one. A contender looks only at the nodes ahead of its own. So a slow contender would
// not see a holder behind it that the former configuration has let in. Hence three rules, in which
// Tightening.Tightened is the transaction that made the lock stricter:
//
//  1. A contender whose node is older than Tightened is outdated: it may not go. When it could go
//     by the former configuration, it renews its place: one transaction deletes its node and
//     creates a new one with the same sequence number. So the place is never empty in between, and
//     a place that was lost never comes back.
//  2. A contender that has renewed its place also counts nodes behind its own: those that are
//     older than Tightened and could have gone by the former configuration. They leave in
//     the end: a holder when it releases, a contender when it renews its place.
//  3. For the contenders behind, the end of a node that is older than Tightened proves nothing,
//     since a new node may stand in its place (Policy.Replaces). This still holds after the lock
//     was made less strict again. A contender whose server lags behind does not know
//     that yet, and renews its place without need (Tightening.Lowered).
//
// Why the rules suffice. Let X be a contender that goes under limit L. Let z be the moment at which
// a limit above L was last replaced, so that every limit since z is at most L. The claim is that
// X and all holders together weigh at most L. X has counted all holders ahead of it, so only the
// holders behind X can break the claim.
//
// First case: some holder behind X went after z. Let T be the last of these in the queue. When T
// went, it counted all nodes ahead of it: X, and all holders but those behind T. These went before
// z, so their nodes are older than z. By rule 2, T counted these as well. So X and all holders
// weigh at most the limit by which T went. That limit was in force after z, so it is at most L.
//
// Second case: all holders behind X went before z, so their nodes are older than z. If X has
// renewed its place, it has counted them itself, by rule 2. If it has not, X is younger than z by
// rule 1, and so are all nodes behind X: there are no such holders.
//
// Rule 2 needs to know later which nodes could have gone before z. A listing shows that, because
// the weight of the places ahead of a node never grows: a node that could go then can go by the
// same configuration now. This is why the renewal is one transaction. If the new node were created
// by itself, a delayed create could bring a place back after an operator had deleted the old node.

// setRule sets the policy of the attempt, whether it is outdated, and the slack by which it goes.
func (a *attempt) setRule(ctx context.Context) (err error) {
	if a.policy, err = decide.RuleOf(a.r.Kind, a.node, a.config); err != nil {
		return err
	}
	if a.policy.Slack < 0 {
		return fmt.Errorf("%w: weight %d: the limit is %d", core.ErrInvalid, a.node.Weight, a.node.Weight+a.policy.Slack)
	}
	if a.outdated, err = a.isOutdated(ctx); err != nil {
		return err
	}
	a.slack = a.policy.Slack
	if a.outdated {
		a.slack = max(a.slack, a.policy.Former)
	}
	return nil
}

// isOutdated reports whether our node may be older than Tightened. It asks the server only if it
// does not know otherwise.
func (a *attempt) isOutdated(ctx context.Context) (bool, error) {
	if _, stat := known(a.own); stat != nil {
		a.czxid = stat.Czxid
	}
	if a.after >= a.policy.Tightened || a.czxid > a.policy.Tightened {
		return false, nil
	}
	if a.czxid != 0 {
		return true, nil
	}
	stat, err := a.s.Exists(ctx, a.path)
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return true, nil // not known: assume the worse
	case err != nil:
		return false, err
	case stat == nil:
		return false, errDeleted
	}
	a.czxid = stat.Czxid
	return !a.policy.Bound(stat), nil
}

// takeOver lets go of the attempt whose place this one has renewed. Its node is gone. If the reply to
// one of its creates was lost, it may have others. If the reply to the renewal was lost, the session
// counts its node (WithMaxNodes) until a delete has found that it is gone.
func (a *attempt) takeOver(ctx context.Context) {
	if old := a.entry.renews; old != nil {
		a.entry.renews = nil
		old.step(decide.Replaced)
		if a.doubt || old.doubt {
			old.remove(ctx)
		}
	}
}

// behind returns the nodes behind our own that are in its way, by rule 2.
func (a *attempt) behind(ctx context.Context, names []string) ([]decide.Blocker, error) {
	if !a.renewed || a.outdated || a.policy.Tightened == 0 {
		return nil, nil
	}
	nodes := slices.DeleteFunc(decide.ParseNodes(names, a.r.Kind.Prefixes...), func(n kinds.Node) bool {
		return a.doubt && n.ID == a.id && n.Name != a.node.Name // a twin, which is being removed
	})
	first, _ := slices.BinarySearchFunc(nodes, a.node, decide.Compare)
	var may []kinds.Node
	for _, n := range nodes[first+1:] {
		p, err := decide.RuleOf(a.r.Kind, n, a.config)
		if err != nil {
			return nil, err
		}
		if decide.MayGo(decide.Blockers(n, nodes, p.Policy), p.Former) {
			may = append(may, n)
		}
	}
	stats, err := a.stats(ctx, may)
	if err != nil {
		return nil, err
	}
	var out []decide.Blocker
	for i, n := range may {
		if stats[i] != nil && !a.policy.Bound(stats[i]) {
			out = append(out, decide.Blocker{Node: n, Weight: decide.WeightOf(a.policy.Policy, n)})
		}
	}
	return out, nil
}

// stats asks for the stats of nodes, several at a time. A node that is gone has none.
func (a *attempt) stats(ctx context.Context, nodes []kinds.Node) ([]*zk.Stat, error) {
	out := make([]*zk.Stat, len(nodes))
	var g errgroup.Group
	g.SetLimit(16)
	for i, n := range nodes {
		g.Go(func() (err error) {
			out[i], err = a.s.Exists(ctx, path.Join(a.q.dir, n.Name))
			return err
		})
	}
	err := g.Wait()
	return out, err
}
