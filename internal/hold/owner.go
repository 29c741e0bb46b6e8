package hold

import "context"

// ownerKey is the context key of an owner.
type ownerKey struct{}

// Owner is one for whom a lock is re-entrant. It is compared by address; it must not be of
// size zero.
type Owner struct{ _ byte }

// WithOwner returns a context that names a new owner.
func WithOwner(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownerKey{}, new(Owner))
}

// OwnerOf returns the owner that a context names, nil for none.
func OwnerOf(ctx context.Context) *Owner {
	o, _ := ctx.Value(ownerKey{}).(*Owner)
	return o
}
