package queue

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// leaseKey is the context key of a lease.
type leaseKey struct{}

// LeaseFrom returns the lease that ctx belongs to, for its token and its guard. Such a ctx is
// passed to the function of a Do, returned by [Lease.Context], or derived from one of these. If
// leases are nested, LeaseFrom returns the innermost. If there is none, it returns false.
//
// In a Do of several locks (Multi of package zklock) use MultiLeaseFrom of that package. There,
// LeaseFrom returns only a lease from further out.
//
// The function of a Do must not release the lease: Do releases it.
func LeaseFrom(ctx context.Context) (*Lease, bool) {
	misuse.Context(ctx, "queue: LeaseFrom")
	l, ok := ctx.Value(leaseKey{}).(*Lease)
	return l, ok
}
