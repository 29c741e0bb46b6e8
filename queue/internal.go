package queue

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/queueplumbing"
)

// The lock packages reach what is below through package queueplumbing, so that it is not in the
// public API of this package.

func init() {
	queueplumbing.OfLease = func(l any) queueplumbing.Lease { return leaseInternal{l.(*Lease).made()} }
	queueplumbing.SetConfiguration = func(kind, c any) { kind.(*Kind).configuration = c.(*configuration) }
	queueplumbing.Deaf = func(data []byte) bool { return whoIs(data).listens() == RevocableNo }
	queueplumbing.Identity = identity
	queueplumbing.StartReleases = func(ctx context.Context, leases any) []func() error {
		return startReleases(ctx, leases.([]*Lease))
	}
	queueplumbing.InAdvance = func(ctx context.Context, parts []queueplumbing.Part) (context.Context, func()) {
		return withAdvance(ctx, joints(parts))
	}
	queueplumbing.Together = func(ctx context.Context, parts []queueplumbing.Part, try bool) (queueplumbing.Party, error) {
		p, err := together(ctx, joints(parts), try)
		if err != nil {
			return nil, err
		}
		return partyInternal{p}, nil
	}
	queueplumbing.OfQueue = func(q any) queueplumbing.Queue { return queueInternal{q.(*Queue).made()} }
}

func joints(parts []queueplumbing.Part) []joint {
	locks := make([]joint, len(parts))
	for i, p := range parts {
		local, _ := p.Local.(*Local)
		locks[i] = joint{p.Queue.(*Queue), local, p.Request.(Request)}
	}
	return locks
}

type leaseInternal struct{ l *Lease }

func (i leaseInternal) StartRelease(ctx context.Context) (wait func() error) {
	return i.l.startRelease(ctx, nil).tell()
}

func (i leaseInternal) Beside(ctx context.Context, request any) (lease any, err error) {
	return i.l.beside(ctx, request.(Request))
}

type queueInternal struct{ q *Queue }

func (i queueInternal) Begin(ctx context.Context, request any) (acquisition any) {
	return i.q.acquisition(ctx, request.(*Request), &entry{})
}

func (i queueInternal) ReadConfig(ctx context.Context) (config, error) { return i.q.config(ctx) }

func (i queueInternal) Reconfigure(ctx context.Context, pin string, keep bool, change func(config) ([]byte, error)) error {
	return i.q.reconfigure(ctx, pin, keep, change)
}

func (i queueInternal) Line(kind any) (next func(context.Context) (contender any, err error)) {
	l := &line{q: i.q, kind: kind.(*Kind)}
	return func(ctx context.Context) (any, error) { return l.next(ctx) }
}

func (i queueInternal) First(ctx context.Context, kind any) (contender any, err error) {
	return i.q.first(ctx, kind.(*Kind))
}

type partyInternal struct{ p *party }

func (i partyInternal) Len() int                                   { return len(i.p.members) }
func (i partyInternal) Next() (any, error)                         { return i.p.next() }
func (i partyInternal) Leave(ctx context.Context, why error) error { return i.p.leave(ctx, why) }
func (i partyInternal) Abandon(ctx context.Context)                { i.p.abandon(ctx) }
