package queue

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// leaseKey is the context key of a lease.
type leaseKey struct{}

// LeaseFrom returns the lease that ctx ends with, for its token and its guard: ctx is the
// context that Do gives to its function, or one that [Lease.Context] returned, or derived from
// such a context. Where several leases are nested, it is the innermost one. It returns false if
// there is none.
//
// In a Do of several locks (Multi of package zklock) use MultiLeaseFrom of that package:
// LeaseFrom knows only of leases further out there.
//
// The function of a Do must not release the lease, as Do does that.
func LeaseFrom(ctx context.Context) (*Lease, bool) {
	misuse.Context(ctx, "queue: LeaseFrom")
	l, ok := ctx.Value(leaseKey{}).(*Lease)
	return l, ok
}
