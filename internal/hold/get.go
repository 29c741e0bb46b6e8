package hold

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/queueplumbing"
)

// Get begins to get a lease, or to try for one and fail with [queue.ErrBusy].
type Get[L Lease] func(ctx context.Context) queueplumbing.Acquisition[L]

// InOneStep returns a Get that calls get, which waits by itself.
func InOneStep[L Lease](get func(context.Context) (L, error)) Get[L] {
	return func(ctx context.Context) queueplumbing.Acquisition[L] { return &oneStep[L]{ctx, get} }
}

type oneStep[L Lease] struct {
	ctx context.Context
	get func(context.Context) (L, error)
}

func (o *oneStep[L]) Next() (lease L, waits bool, err error) {
	lease, err = o.get(o.ctx)
	return lease, false, err
}

func (*oneStep[L]) Wait() {}
