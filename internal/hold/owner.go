package hold

import "context"

// ownerKey is the context key of an owner.
type ownerKey struct{}

// Owner can enter its holds again. Owners are compared by address, so an Owner must have a size.
type Owner struct{ _ byte }

// WithOwner returns a context with a new owner.
func WithOwner(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownerKey{}, new(Owner))
}

// OwnerOf returns the owner of a context, nil for none.
func OwnerOf(ctx context.Context) *Owner {
	o, _ := ctx.Value(ownerKey{}).(*Owner)
	return o
}
