package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/decide"
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

// survey lists the directory, and reads its configuration if the kind has one. Before there is a node it reads that in any
// case, so that a busy try takes one round trip also after a change.
func (a *attempt) survey(ctx context.Context) ([]string, error) {
	if a.r.Kind.Configuration == nil {
		names, _, err := a.listChildren(ctx)
		return names, err
	}
	if known := a.q.known.Load(); known != nil && known.in == a.s.ID() && a.is() != decide.Outside {
		names, stat, err := a.listChildren(ctx)
		if err != nil || known.Changed == stat.Mzxid {
			a.config = known.Config
			return names, err
		}
	}
	pace := a.q.newPace()
	for {
		names, listed, err := a.surveyBoth(ctx)
		if err != nil {
			return nil, err
		}
		if a.config.Changed >= listed {
			if len(a.config.Data) > 0 {
				a.q.known.Store(&knownConfig{a.config, a.s.ID()})
			}
			return names, nil
		}
		if err := pace.Wait(ctx, a.s.Done()); err != nil {
			return nil, err
		}
	}
}

// surveyBoth lists the directory and reads its configuration. It also returns the transaction that had set
// the configuration by the time of the listing.
//
// Both requests are sent together, so the answers may be of different moments. A configuration
// that is older than the listing decides nothing, since contenders may have come or gone by a
// newer one. A configuration that is newer than the listing is fine: nodes ahead only leave.
func (a *attempt) surveyBoth(ctx context.Context) ([]string, int64, error) {
	var g errgroup.Group
	g.Go(func() (err error) {
		if a.is() == decide.Outside { // a look writes nothing
			a.config, err = readConfig(ctx, a.s, a.q.dir)
			return err
		}
		a.config, err = a.q.configIn(ctx, a.s, a.r.Kind)
		return err
	})
	names, stat, err := a.listChildren(ctx)
	if err = errors.Join(err, g.Wait()); err != nil {
		return nil, 0, err
	}
	return names, stat.Mzxid, nil
}

// listChildren lists the directory. Before there is a node, it does so behind a sync. If the place may be kept, it sets a
// watch in the same request.
func (a *attempt) listChildren(ctx context.Context) (names []string, stat *zk.Stat, err error) {
	switch {
	case a.is() == decide.Outside:
		return a.s.SyncedChildren(ctx, a.q.dir)
	case !a.entry.Lazy || a.waited:
		return a.s.Children(ctx, a.q.dir)
	}
	names, stat, a.children, err = a.s.List(ctx, a.q.dir)
	return names, stat, err
}

// decide returns the nodes of a listing that are in the way.
func (a *attempt) decide(ctx context.Context, names []string) (*decide.Tail, error) {
	err := a.rivals(ctx, names)
	if err == nil {
		err = a.setRule(ctx)
	}
	if err == nil && a.entry.beside != nil {
		err = a.sharePlace(ctx, names)
	}
	ahead, conflict := a.read(ctx, names)
	if err := cmp.Or(conflict, err); err != nil {
		return nil, err
	}
	a.takeOver(ctx)
	if shown := a.entry.Shown; shown != nil {
		shown.listed.Store(&listed{a.children, a.crowded})
	}
	if a.position < 0 {
		a.position = ahead.Count()
	}
	behind, err := a.behind(ctx, names)
	for _, b := range behind {
		ahead.Add(b)
	}
	ahead.Sort()
	return ahead, err
}

// read reads the names of a listing, and notes whether others wait for our node. It fails with ErrConflict
// if a name is that of another kind of lock.
func (a *attempt) read(ctx context.Context, names []string) (*decide.Tail, error) {
	seen := a.reader().Read(names)
	if seen.Stranger.Name != "" {
		return nil, conflictOf(a.r.Kind, seen.Stranger)
	}
	for _, twin := range seen.Twins {
		a.removeTwin(ctx, twin)
	}
	a.crowded = seen.Crowded
	return seen.Ahead, nil
}

// reader returns our node, as far as it matters for what a listing says.
func (a *attempt) reader() *decide.Contender {
	me := &decide.Contender{Kind: a.r.Kind, Node: a.node, Rule: a.policy, Slack: a.slack, Doubt: a.doubt, Lazy: a.entry.Lazy}
	if a.entry.beside != nil {
		me.Beside = a.entry.beside.t.node.Name
	}
	return me
}

// rivals fails with ErrConflict if contenders of another kind of lock are in one of the
// directories that the kind names. Those contenders make their nodes before they look for
// ours, as we do, so at least one of the two sees the other.
func (a *attempt) rivals(ctx context.Context, names []string) error {
	c := a.r.Kind.Configuration
	if c == nil || c.Rivals == nil {
		return nil
	}
	for _, name := range c.Rivals(names) {
		children, _, err := a.s.Children(ctx, path.Join(a.q.dir, name))
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil:
			return err
		case len(decide.ParseNodes(children)) > 0:
			return fmt.Errorf("%w: %s lock finds contenders below %s", ErrConflict, Called(a.r.Kind), path.Join(a.q.dir, name))
		}
	}
	return nil
}
