package queue

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"
	"github.com/turnstile-go/turnstile/session"
	"golang.org/x/sync/errgroup"
)

// A configuration that is made stricter, such as a lower limit of a semaphore, counts from
// then on, but contenders have gone by the one before. One that stands ahead of them and was
// slow would not see them: a contender looks at the nodes ahead of its own. Hence three rules
// for a contender, where Policy.Tightened is the transaction that made the lock stricter:
//
//   - If its node is older than that, it is outdated: it may not go. When it could have gone
//     by the configuration before, it renews its place: it makes a new node with the same
//     sequence beside the old one, in one transaction with the check that the old one is there,
//     and removes that. So a place that was gone never comes back, not even for a moment: see
//     behind, which relies on it that the weight ahead of a node never grows.
//   - If it has renewed its place, the nodes behind its own that are older than that, and that
//     could have gone by the configuration before, are in its way as well. They leave it: those
//     of holders in the end, and those of contenders when they renew their places.
//   - To the contenders behind it, that an older node is gone proves nothing: another may stand
//     in its place (Policy.Replaces). That holds also when the lock is less strict again: its
//     server may lag behind, so that the contender renews a place without need (Policy.Lowered).
//
// Why that is enough. Take the contender X that is just going under limit L, and the time z at
// which a limit above L last ended. Of the holders behind X let T be the last in the queue that
// was let in after z. T has counted all that are ahead of it, and of those behind it all that
// are older than z and may have gone; the others behind T hold since before z, so they are
// among these. So with X, which is ahead of T, all of them together are no more than the limit
// was when T went, and that is at most L. What could have gone before z can still be seen to, as
// the weight of the places ahead of a node never grows. If there is no T, all holders behind X are older than
// z and X has counted them itself. A contender that has not renewed its place is younger than
// z, and so are all behind it.

// errOutdated says that an attempt stood in line before the lock was made stricter, and has to
// renew its place. It has not left it.
var errOutdated = errors.New("the lock was made stricter")

// bound reports whether a node is governed by the present configuration, and by no less strict
// one before it.
func (p Policy) bound(stat *zk.Stat) bool { return stat.Czxid > p.Tightened }

// lasts reports whether a contender that is not yet let in keeps its node: it is younger than
// every configuration by which it could be outdated.
func (p Policy) lasts(stat *zk.Stat) bool { return p.Lowered != 0 && stat.Czxid > p.Lowered }

// judge decides by which slack the contender goes.
func (a *attempt) judge(ctx context.Context) (err error) {
	if a.policy, err = a.r.Kind.policyOf(a.node, a.config); err != nil {
		return err
	}
	if a.policy.Slack < 0 {
		return fmt.Errorf("queue: %w: %d of %d", session.ErrInvalid, a.node.Weight, a.node.Weight+a.policy.Slack)
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

// isOutdated reports whether our node may be older than the configuration that it must go by.
// The server is asked only where nothing else tells.
func (a *attempt) isOutdated(ctx context.Context) (bool, error) {
	if a.after >= a.policy.Tightened || a.czxid > a.policy.Tightened {
		return false, nil
	}
	if a.czxid != 0 {
		return true, nil
	}
	stat, err := a.s.Exists(ctx, a.nodePath())
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return true, nil // what nobody tells us is taken for the worse
	case err != nil:
		return false, err
	case stat == nil:
		return false, errDeleted
	}
	a.czxid = stat.Czxid
	return !a.policy.bound(stat), nil
}

// proceed is called when nothing is in the way.
func (a *attempt) proceed() error {
	if a.outdated {
		return errOutdated
	}
	return a.grant()
}

// renewal is the create of a node in the place of another, in one transaction with the check that
// the other is still there. A place must not come back once it was gone: somebody behind may have
// gone meanwhile, and would look as if he could not have (see behind).
type renewal struct {
	done  chan struct{}
	node  string
	err   error
	after int64
}

func (r *renewal) Done() <-chan struct{}   { return r.done }
func (r *renewal) Result() (string, error) { return r.node, r.err }
func (r *renewal) After() int64            { return r.after }

func startRenewal(ctx context.Context, s *session.Session, old *attempt, node string, data []byte) *renewal {
	r := &renewal{done: make(chan struct{}), after: old.config.Changed}
	ctx = context.WithoutCancel(ctx) // it ends with its answer, or with the session
	go func() {
		defer close(r.done)
		r.err = zk.ErrConnectionClosed // if a hook ends the goroutine: not known
		_, err := s.Multi(ctx,
			&zk.CheckVersionRequest{Path: old.nodePath(), Version: -1},
			&zk.CreateRequest{Path: node, Data: data, Flags: zk.FlagEphemeral})
		if r.err = err; err == nil {
			r.node = node
		}
	}()
	return r
}

// succeed takes the place of the attempt that this one renews, and returns the nodes without
// that one's. The first listing must show both: nobody behind has come ahead then.
func (a *attempt) succeed(ctx context.Context, nodes []Node) ([]Node, error) {
	if a.before == "" {
		return nodes, nil
	}
	isOld := func(n Node) bool { return n.ID == a.before }
	if old := a.entry.renews; old != nil {
		if !slices.ContainsFunc(nodes, isOld) {
			return nil, errDeleted
		}
		a.entry.renews = nil
		old.leave(ctx, nil)
	}
	return slices.DeleteFunc(nodes, isOld), nil
}

// behind returns which nodes behind our own are in its way.
func (a *attempt) behind(ctx context.Context, nodes []Node) ([]blocker, error) {
	if a.before == "" || a.outdated || a.policy.Tightened == 0 {
		return nil, nil
	}
	first, _ := slices.BinarySearchFunc(nodes, a.node, compareNodes)
	// One that is just renewing its place has two nodes there, and counts once: what is ahead
	// of a node must not grow.
	places := slices.CompactFunc(slices.Clone(nodes), func(a, b Node) bool { return a.Sequence == b.Sequence })
	var may []Node
	for _, n := range nodes[first+1:] {
		p, err := a.r.Kind.policyOf(n, a.config)
		if err != nil {
			return nil, err
		}
		if mayGo(blockers(n, places, p), p.Former) {
			may = append(may, n)
		}
	}
	stats, err := a.stats(ctx, may)
	if err != nil {
		return nil, err
	}
	var out []blocker
	for i, n := range may {
		if stats[i] != nil && !a.policy.bound(stats[i]) {
			out = append(out, blocker{node: n, weight: weightOf(a.policy, n)})
		}
	}
	return out, nil
}

// stats asks for all nodes at once; those that are gone have none.
func (a *attempt) stats(ctx context.Context, nodes []Node) ([]*zk.Stat, error) {
	out, answered := make([]*zk.Stat, len(nodes)), make([]bool, len(nodes))
	var g errgroup.Group
	g.SetLimit(16)
	for i, n := range nodes {
		g.Go(func() (err error) {
			out[i], err = a.s.Exists(ctx, path.Join(a.q.dir, n.Name))
			answered[i] = true
			return err
		})
	}
	err := g.Wait()
	if err == nil && slices.Contains(answered, false) {
		err = errEnded // a hook has ended the goroutine: nobody knows whether the node is there
	}
	return out, err
}
