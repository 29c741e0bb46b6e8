package place

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/internal/nodedata"
	"github.com/turnstile-go/turnstile/kinds"
)

// Contenders returns the contenders of a kind, in order, as they were at a moment that has passed. If the
// directory does not exist, the error matches zk.ErrNoNode.
func (q *Queue) Contenders(ctx context.Context, kind *kinds.Kind) (out []kinds.Contender, err error) {
	if err = kind.Check(); err == nil {
		err = q.inSession(ctx, q.newPace(), func(ctx context.Context, s *core.Session) (err error) {
			out, err = q.contendersIn(ctx, s, kind)
			return err
		})
	}
	if err != nil {
		return nil, Failed("contenders of", q.dir, err)
	}
	return out, nil
}

func (q *Queue) contendersIn(ctx context.Context, s *core.Session, kind *kinds.Kind) ([]kinds.Contender, error) {
	names, _, err := s.Children(ctx, q.dir)
	if err != nil {
		return nil, err
	}
	nodes, err := ofKind(decide.ParseNodes(names, kind.Prefixes...), kind)
	if err != nil || len(nodes) == 0 {
		return []kinds.Contender{}, err
	}
	var c kinds.Config
	if kind.Configuration != nil {
		c, err = readConfig(ctx, s, q.dir)
		if errors.Is(err, zk.ErrNoNode) { // all have left since the listing
			return []kinds.Contender{}, nil
		}
		if err != nil {
			return nil, err
		}
	}
	out := make([]kinds.Contender, len(nodes))
	for i, n := range nodes {
		out[i] = kinds.Contender{Path: path.Join(q.dir, n.Name), Sequence: n.Sequence}
	}
	if err := readData(ctx, s, out); err != nil {
		return nil, err
	}
	holds, err := decide.Holders(nodes,
		func(n kinds.Node) (decide.Rule, error) { return decide.RuleOf(kind, n, c) },
		func(i int) bool { return gone(out[i]) })
	for i, h := range holds {
		out[i].Holder = h
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(out, gone), nil
}

// gone reports whether the contender has left since the directory was listed: see readData.
func gone(c kinds.Contender) bool { return c.Path == "" }

// readData adds what the nodes say. The path of a contender whose node is gone becomes "".
func readData(ctx context.Context, s *core.Session, all []kinds.Contender) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i := range all {
		g.Go(func() error {
			data, stat, err := s.Get(ctx, all[i].Path)
			if errors.Is(err, zk.ErrNoNode) {
				all[i].Path = "" // gone
				return nil
			}
			if err == nil {
				fill(&all[i], s, data, stat)
			}
			return err
		})
	}
	return g.Wait()
}

// fill adds what the node says, and what this process knows of it.
func fill(c *kinds.Contender, s *core.Session, data []byte, stat *zk.Stat) {
	describe(c, data, stat)
	if c.Own = c.Session == s.ID(); c.Own {
		c.HeldSince, c.Kept = held.look(s, c.Path)
	}
}

// describe adds what the node's data and stat say.
func describe(c *kinds.Contender, data []byte, stat *zk.Stat) {
	who := nodedata.Of(data)
	c.Data, c.ID, c.Label, c.Traceparent = data, who.ID, who.Label, who.Traceparent
	c.Since, c.Session, c.Token = time.UnixMilli(stat.Ctime), stat.EphemeralOwner, stat.Czxid
}

// ofKind returns the nodes, or ErrConflict if one of them is of another kind of lock.
func ofKind(nodes []kinds.Node, kind *kinds.Kind) ([]kinds.Node, error) {
	for _, n := range nodes {
		if !slices.Contains(kind.Prefixes, n.Prefix) {
			return nil, conflictOf(kind, n)
		}
	}
	return nodes, nil
}

// conflictOf returns the error of a kind for a contender of another kind of lock.
func conflictOf(k *kinds.Kind, n kinds.Node) error {
	return fmt.Errorf("%w: %s lock finds %s", ErrConflict, Called(k), n.Name)
}

// listed returns the contenders of a kind in order, and up to which transaction the list shows the directory.
func (q *Queue) listed(ctx context.Context, s *core.Session, kind *kinds.Kind) (nodes []kinds.Node, until int64, err error) {
	names, stat, err := s.Children(ctx, q.dir)
	if err != nil {
		return nil, 0, err
	}
	nodes, err = ofKind(decide.ParseNodes(names, kind.Prefixes...), kind)
	return nodes, stat.Pzxid, err
}
