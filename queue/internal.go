package queue

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/queueinternal"
)

// The lock packages reach what is below through package queueinternal, so that it is not in the
// public API of this package.

func init() {
	queueinternal.OfLease = func(l any) queueinternal.Lease { return leaseInternal{l.(*Lease).made()} }
	queueinternal.OfQueue = func(q any) queueinternal.Queue { return queueInternal{q.(*Queue).made()} }
}

type leaseInternal struct{ l *Lease }

func (i leaseInternal) StartRelease(ctx context.Context) (wait func() error) {
	return i.l.startRelease(ctx)
}

func (i leaseInternal) Beside(ctx context.Context, request any) (lease any, err error) {
	return i.l.beside(ctx, request.(Request))
}

type queueInternal struct{ q *Queue }

func (i queueInternal) Config(ctx context.Context) (config any, err error) { return i.q.config(ctx) }

func (i queueInternal) Reconfigure(ctx context.Context, pin string, keep bool, change any) error {
	return i.q.reconfigure(ctx, pin, keep, change.(func(Config) ([]byte, error)))
}
