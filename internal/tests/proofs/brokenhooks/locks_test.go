package brokenhooks

import (
	"context"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// lock has the functions of a lock that the tests need.
type lock interface {
	Acquire(ctx context.Context) (*queue.Lease, error)
	TryAcquire(ctx context.Context) (*queue.Lease, error)
	Contenders(ctx context.Context) ([]queue.Contender, error)
}

// locks are the types of lock. Each makes a lock at a path, whose functions call the trap.
var locks = map[string]func(t *trap, m *session.Manager, path string) (lock, error){
	"plain": func(_ *trap, m *session.Manager, path string) (lock, error) { return zklock.New(m, path) },
	"local": func(_ *trap, m *session.Manager, path string) (lock, error) {
		return zklock.New(m, path, zklock.WithLocalHandover(10))
	},
	"semaphore": func(_ *trap, m *session.Manager, path string) (lock, error) { return semaphore.New(m, path, 1) },
	"writer":    func(_ *trap, m *session.Manager, path string) (lock, error) { return rwlock.New(m, path) },
	"policy": func(t *trap, m *session.Manager, path string) (lock, error) {
		return newCustom(m, path, &queue.Kind{Name: "policy", Prefixes: []string{"custom-"}, Policy: t.policy})
	},
	"configured": func(t *trap, m *session.Manager, path string) (lock, error) {
		kind := &queue.Kind{Name: "configured", Prefixes: []string{"custom-"}}
		kind.Configuration = &queue.Configuration{Config: []byte("x"), Policy: t.configured}
		return newCustom(m, path, kind)
	},
}

// custom is a lock of a kind that this test defines.
type custom struct {
	q    *queue.Queue
	kind *queue.Kind
}

func newCustom(m *session.Manager, path string, kind *queue.Kind) (lock, error) {
	q, err := queue.New(m, path)
	return custom{q, kind}, err
}

func (c custom) Acquire(ctx context.Context) (*queue.Lease, error) {
	return c.q.Acquire(ctx, queue.Request{Kind: c.kind})
}

func (c custom) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return c.q.TryAcquire(ctx, queue.Request{Kind: c.kind})
}

func (c custom) Contenders(ctx context.Context) ([]queue.Contender, error) {
	return c.q.Contenders(ctx, c.kind)
}
