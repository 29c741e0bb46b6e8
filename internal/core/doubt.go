package core

import (
	"bytes"
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/room"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// lostCreate is a create of an ephemeral node whose reply was lost.
type lostCreate struct {
	path string // as asked for
	data []byte
	mode CreateMode
}

// clarify finds out, in the background, whether creates of a request whose reply was lost have made nodes, and whether
// the nodes that it deletes are gone: those that were counted at these paths. Their caller may look for the nodes too, or
// not. Until it is known, the nodes count.
func (s *Session) clarify(ctx context.Context, b *room.Booking, creates []lostCreate) {
	if b == nil || s.Err() != nil {
		return
	}
	s.background(func() {
		ctx := s.lifeWith(ctx)
		for path, node := range b.Deleted() {
			s.untilAnswered(func() error { return s.lookForGone(ctx, path, node) })
		}
		for i, one := range creates {
			if one.path != "" {
				s.clarifyOne(ctx, b, i, one)
			}
		}
	})
}

// clarifyOne looks until it has an answer, or the session ends.
func (s *Session) clarifyOne(ctx context.Context, b *room.Booking, i int, c lostCreate) {
	if s.creates.alone(ctx, c.path) != nil {
		return
	}
	defer s.creates.shared(c.path)
	g := &abandonedCreate{s: s, path: c.path, data: c.data, mode: c.mode}
	s.untilAnswered(func() error { return s.look(ctx, b, i, g) })
}

// untilAnswered calls look until it succeeds, or the session ends.
func (s *Session) untilAnswered(look func() error) {
	wait := s.cfg.Retry()
	for err := look(); err != nil; err = look() {
		if classify(err) == answered {
			wait = slowRetry(s.Timeout()) // the permission may come back
		}
		if rounds.Pause(s.life, rounds.Untiring(wait)) != nil {
			return
		}
	}
}

// look counts the node of a create if it is there. A delete that was sent before the node was counted does not uncount
// it. So look looks again then: on one connection, requests are carried out in the order in which they were sent.
func (s *Session) look(ctx context.Context, b *room.Booking, i int, g *abandonedCreate) error {
	if _, err := g.find(ctx); err != nil {
		return err
	}
	b.Resolve(i, g.node)
	if g.node == "" {
		return nil
	}
	noted := s.room.At(g.node)
	stat, err := s.Exists(ctx, g.node)
	if err == nil && (stat == nil || stat.EphemeralOwner != s.ID()) {
		s.room.Gone(noted)
	}
	return err
}

// lookForGone looks whether the node that was counted at a path is gone.
func (s *Session) lookForGone(ctx context.Context, path string, node *room.Node) error {
	if err := s.newSync(ctx, path); err != nil {
		return err
	}
	stat, err := s.Exists(ctx, path)
	if err == nil && (stat == nil || stat.EphemeralOwner != s.ID()) {
		s.room.Gone(node)
	}
	return err
}

// lostOf returns the operations of a multi that make ephemeral nodes, each at its index.
func lostOf(ops []any) []lostCreate {
	lost := make([]lostCreate, len(ops))
	for i, op := range ops {
		if c, ok := op.(*zk.CreateRequest); ok && (CreateMode{flag: c.Flags}).ephemeral() {
			lost[i] = lostCreate{c.Path, bytes.Clone(c.Data), CreateMode{flag: c.Flags}}
		}
	}
	return lost
}
