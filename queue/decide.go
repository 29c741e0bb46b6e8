package queue

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"
	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"golang.org/x/sync/errgroup"
)

// list returns a new listing. The session has seen our node, so a listing without it says that
// the node was deleted.
func (a *attempt) list(ctx context.Context) ([]string, error) {
	names, err := a.survey(ctx)
	if errors.Is(err, zk.ErrNoNode) || err == nil && !slices.Contains(names, a.node.Name) {
		return nil, errDeleted
	}
	return names, err
}

// survey lists the directory, and reads its configuration if the kind has one.
//
// Both requests are sent together, so the answers may be of different moments. A configuration
// that is older than the listing decides nothing, since contenders may have come or gone by a
// newer one. A configuration that is newer than the listing is fine: nodes ahead only leave.
func (a *attempt) survey(ctx context.Context) ([]string, error) {
	pace := rounds.Pace{New: plumbing.OfManager(a.q.m).Retry()}
	for {
		var g errgroup.Group
		configured, answered := a.r.Kind.Configured != nil, false
		if configured {
			g.Go(func() (err error) {
				a.config, err = a.q.configIn(ctx, a.s, a.r.Kind)
				answered = true
				return err
			})
		}
		names, stat, err := a.s.Children(ctx, a.q.dir)
		err = errors.Join(err, g.Wait())
		if configured && !answered && err == nil {
			err = errEnded
		}
		if err != nil || !configured || a.config.Changed >= stat.Mzxid {
			return names, err
		}
		if err := pace.Wait(ctx, a.s.Done()); err != nil {
			return nil, err
		}
	}
}

// decide returns the nodes of a listing that are in the way.
func (a *attempt) decide(ctx context.Context, names []string) ([]blocker, error) {
	nodes, err := ofKind(parseNodes(names, a.r.Kind.Prefixes...), a.r.Kind)
	if err != nil {
		return nil, err
	}
	if err := a.rivals(ctx, names); err != nil {
		return nil, err
	}
	if err := a.judge(ctx); err != nil {
		return nil, err
	}
	if a.doubt {
		nodes = slices.DeleteFunc(nodes, func(n Node) bool { return a.isTwin(ctx, n) })
	}
	if nodes, err = a.sharePlace(ctx, nodes); err != nil {
		return nil, err
	}
	a.succeed(ctx)
	ahead := blockers(a.node, nodes, a.policy)
	if a.position < 0 {
		a.position = len(ahead)
	}
	behind, err := a.behind(ctx, nodes)
	return append(ahead, behind...), err
}

// rivals fails with ErrConflict if contenders of another kind of lock are in one of the
// directories that the kind names. Those contenders make their nodes before they look for
// ours, as we do, so at least one of the two sees the other.
func (a *attempt) rivals(ctx context.Context, names []string) error {
	if a.r.Kind.Rivals == nil {
		return nil
	}
	for _, name := range a.r.Kind.Rivals(names) {
		children, _, err := a.s.Children(ctx, path.Join(a.q.dir, name))
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil:
			return err
		case len(parseNodes(children)) > 0:
			return fmt.Errorf("%w: a %s lock finds contenders below %s", ErrConflict, a.r.Kind.Name, path.Join(a.q.dir, name))
		}
	}
	return nil
}
