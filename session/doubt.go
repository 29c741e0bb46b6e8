package session

import (
	"bytes"
	"context"

	"github.com/go-zookeeper/zk"
)

// lostCreate is a create of an ephemeral node whose reply was lost.
type lostCreate struct {
	path string // as asked for
	data []byte
	mode CreateMode
}

// clarify finds out, in the background, whether creates of a request whose reply was lost have made nodes. Their
// caller may look for the nodes too, or not. Until it is known, the nodes count.
func (s *Session) clarify(ctx context.Context, b *booking, creates []lostCreate) {
	if b == nil || s.Err() != nil {
		return
	}
	s.background(func() {
		ctx := s.lifeWith(ctx)
		for i, one := range creates {
			if one.path != "" {
				s.clarifyOne(ctx, b, i, one)
			}
		}
	})
}

// clarifyOne looks until it has an answer, or the session ends.
func (s *Session) clarifyOne(ctx context.Context, b *booking, i int, c lostCreate) {
	if s.creates.alone(ctx, c.path) != nil {
		return
	}
	defer s.creates.shared(c.path)
	wait := s.cfg.retry()
	g := &abandonedCreate{s: s, path: c.path, data: c.data, mode: c.mode}
	for {
		_, err := g.find(ctx)
		if err == nil {
			b.resolve(i, g.node)
			return
		}
		if classify(err) == answered {
			wait = slowRetry(s.Timeout()) // the permission may come back
		}
		if pause(s.life, untiring(wait)) != nil {
			return
		}
	}
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
