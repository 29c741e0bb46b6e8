package hold

import "context"

// Get begins to get a lease.
type Get[L Lease] func(ctx context.Context) Acquisition[L]

// Acquisition gets a lease in steps, so that a goroutine waits on as little stack as possible. One goroutine
// uses it. It must go on until Next returns waits as false. A [place.Acquisition] is one.
type Acquisition[L Lease] interface {
	// Next does what is to be done, and returns the lease or an error. With waits as true it has nothing to
	// do until Wait returns.
	Next() (lease L, waits bool, err error)
	// Wait waits for others, or until the context of the acquisition ends.
	Wait()
}

// InOneStep returns a Get that calls get, which waits by itself.
func InOneStep[L Lease](get func(context.Context) (L, error)) Get[L] {
	return func(ctx context.Context) Acquisition[L] { return &oneStep[L]{ctx, get} }
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
