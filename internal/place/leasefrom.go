package place

import "context"

// leaseKey is the context key of a lease.
type leaseKey struct{}

// LeaseFrom returns the lease that ctx belongs to. Such a ctx is returned by Context of a Lease, or derived
// from that.
func LeaseFrom(ctx context.Context) (*Lease, bool) {
	l, ok := ctx.Value(leaseKey{}).(*Lease)
	return l, ok
}
