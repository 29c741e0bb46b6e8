package core

import (
	"bytes"
	"context"
	"path"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/room"
)

// search looks for the node of a create, of which it may know the path, or what can tell the node from
// others.
type search struct {
	s    *Session
	path string // as asked for
	data []byte
	mode CreateMode

	node  string     // the path of the node; "" while not known
	upTo  int64      // its czxid is at most this, if the create was answered
	noted *room.Node // what is counted of it; nil while it is not known
}

// clarify finds out, in the background, whether the creates of a request whose reply was lost have made
// nodes, and whether the nodes that it deletes are gone. Its caller may look for the nodes too, or not. Until
// it is known, the nodes count. creates are by operation; nil stands for another operation.
func (s *Session) clarify(ctx context.Context, b *room.Booking, creates ...*search) {
	if b == nil || s.Err() != nil {
		return
	}
	_ = s.begin(func() {
		ctx := s.lifeWith(ctx)
		for path, node := range b.Deleted() {
			_ = s.untilDone(func() error {
				if err := s.newSync(ctx, path); err != nil {
					return err
				}
				return s.lookForGone(ctx, path, node)
			}, unreported)
		}
		for i, one := range creates {
			if one != nil {
				s.clarifyOne(ctx, b, i, one)
			}
		}
	})
}

// clarifyOne looks until it has an answer, or the session ends.
func (s *Session) clarifyOne(ctx context.Context, b *room.Booking, i int, g *search) {
	if s.creates.alone(ctx, g.path) != nil {
		return
	}
	defer s.creates.shared(g.path)
	_ = s.untilDone(func() error { return s.look(ctx, b, i, g) }, unreported)
}

func unreported(error) {}

// look counts the node of a create if it is there. A delete that was sent before the node was counted does
// not uncount it. So look looks again then: on one connection, requests are carried out in the order in which
// they were sent.
func (s *Session) look(ctx context.Context, b *room.Booking, i int, g *search) error {
	if _, err := g.find(ctx); err != nil {
		return err
	}
	b.Resolve(i, g.node)
	if g.node == "" {
		return nil
	}
	return s.lookForGone(ctx, g.node, s.room.At(g.node))
}

// lookForGone counts a node no more if it is gone from its path.
func (s *Session) lookForGone(ctx context.Context, path string, node *room.Node) error {
	stat, err := s.Exists(ctx, path)
	if err == nil && (stat == nil || stat.EphemeralOwner != s.ID()) {
		s.room.Gone(node)
	}
	return err
}

// find returns the stat of the node, or nil if there is none, and sets g.node.
func (g *search) find(ctx context.Context) (*zk.Stat, error) {
	dir, _ := path.Split(g.path)
	if err := g.s.newSync(ctx, path.Clean(dir)); err != nil {
		return nil, err
	}
	switch {
	case g.node != "":
		stat, err := g.s.Exists(ctx, g.node)
		if err == nil && stat != nil && g.isOthers(stat) {
			stat = nil
		}
		return stat, err
	case g.mode.sequential():
		return g.amongChildren(ctx, path.Clean(dir))
	}
	return g.match(ctx, g.path)
}

// isOthers reports whether the node at the path is not the one that the create made.
func (g *search) isOthers(stat *zk.Stat) bool {
	if g.mode.ephemeral() && (stat.EphemeralOwner != g.s.ID() || g.s.room.At(g.node) != g.noted) {
		return true
	}
	return g.upTo != 0 && stat.Czxid > g.upTo
}

// amongChildren looks for a sequential node whose number is not known. It takes one node at most. If
// several nodes match, the others belong to other creates.
func (g *search) amongChildren(ctx context.Context, dir string) (*zk.Stat, error) {
	names, _, err := g.s.Children(ctx, dir)
	if err != nil {
		return nil, ignoreNoNode(err)
	}
	for _, name := range names {
		node := path.Join(dir, name)
		if checkMade(g.path, g.mode, node) != nil {
			continue
		}
		if stat, err := g.match(ctx, node); err != nil || stat != nil {
			return stat, err
		}
	}
	return nil, nil
}

// match returns the stat of a node if the create may have made it: this session owns the node,
// the node has the data, and it is not the answer to another create.
func (g *search) match(ctx context.Context, node string) (*zk.Stat, error) {
	if g.s.room.At(node) != nil {
		return nil, nil
	}
	data, stat, err := g.s.Get(ctx, node)
	if err != nil || stat.EphemeralOwner != g.s.ID() || !bytes.Equal(data, g.data) {
		return nil, ignoreNoNode(err)
	}
	g.node = node
	return stat, nil
}
