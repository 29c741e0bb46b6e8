package brokenpolicies

import (
	"context"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// kinds are kinds of lock whose policies call the trap.
var kinds = map[string]func(t *trap) *queue.Kind{
	"policy": func(t *trap) *queue.Kind {
		return &queue.Kind{Name: "policy", Prefixes: []string{"custom-"}, Policy: t.policy}
	},
	"configured": func(t *trap) *queue.Kind {
		return &queue.Kind{
			Name: "configured", Prefixes: []string{"custom-"},
			Configuration: &queue.Configuration{Config: []byte("x"), Policy: t.configured},
		}
	},
}

// lock is a lock of such a kind.
type lock struct {
	q    *queue.Queue
	kind *queue.Kind
}

func newLock(m *session.Manager, path string, kind *queue.Kind) (lock, error) {
	q, err := queue.New(m, path)
	return lock{q, kind}, err
}

func (l lock) Acquire(ctx context.Context) (*queue.Lease, error) {
	return l.q.Acquire(ctx, queue.Request{Kind: l.kind})
}

func (l lock) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return l.q.TryAcquire(ctx, queue.Request{Kind: l.kind})
}

func (l lock) Contenders(ctx context.Context) ([]queue.Contender, error) {
	return l.q.Contenders(ctx, l.kind)
}
