package rwlock

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/queueplumbing"
	"github.com/turnstile-go/turnstile/queue"
)

// side is the way in for writers, or for readers.
type side struct {
	q     *queue.Queue
	r     queue.Request
	local *queue.Local // with WithLazyRelease; nil: each call has a place of its own
}

// newSide returns the side of a request. lazy has at most the option of WithLazyRelease.
func newSide(q *queue.Queue, r queue.Request, lazy []queue.LocalOption) (s side, err error) {
	s = side{q: q, r: r}
	if len(lazy) > 0 {
		s.local, err = q.Local(r, 0, lazy...)
	}
	return s, err
}

func (s *side) Acquire(ctx context.Context) (*queue.Lease, error) {
	if s.local != nil {
		return s.local.Acquire(ctx)
	}
	return s.q.Acquire(ctx, s.r)
}

// get is Acquire in steps.
func (s *side) get(ctx context.Context) queueplumbing.Acquisition[*queue.Lease] {
	if s.local != nil {
		return hold.InOneStep(s.local.Acquire)(ctx)
	}
	r := s.r
	return queueplumbing.Begin[*queue.Lease](ctx, s.q, &r)
}

func (s *side) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	if s.local != nil {
		return s.local.TryAcquire(ctx)
	}
	return s.q.TryAcquire(ctx, s.r)
}

// part is what the side contributes to a transaction of several locks.
func (s *side) part() queueplumbing.Part {
	p := queueplumbing.Part{Queue: s.q, Request: s.r}
	if s.local != nil {
		p.Local = s.local
	}
	return p
}
