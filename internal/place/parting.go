package place

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/core"
)

// parting is the removal of nodes that go at the same time. The nodes of one session are deleted by
// one transaction. A nil parting deletes each node by itself, at once.
type parting struct {
	removals map[*core.Session]*core.Removals
}

// remover returns the way to delete a node of a session. The caller calls start afterwards.
func (p *parting) remover(s *core.Session) remover {
	if p == nil {
		return s.Remove
	}
	r, ok := p.removals[s]
	if !ok {
		if p.removals == nil {
			p.removals = make(map[*core.Session]*core.Removals)
		}
		r = s.Removals()
		p.removals[s] = r
	}
	return r.Remove
}

// start sends the deletes.
func (p *parting) start(ctx context.Context) {
	for _, r := range p.removals {
		r.Start(ctx)
	}
}
