package zklock

import "context"

// ownerKey is the context key of an owner.
type ownerKey struct{}

// owner is compared by address; it must not be of size zero.
type owner struct{ _ byte }

// WithOwner returns a context that names a new owner, for re-entrancy: where Java has
// threads, Go has contexts. A Lock with this context, or one made from it, by the owner
// that holds the mutex adds one to its hold count and returns at once; Unlock takes one
// off. Without an owner a second Lock waits, as that of [sync.Mutex] does.
func WithOwner(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownerKey{}, new(owner))
}

func ownerOf(ctx context.Context) *owner {
	o, _ := ctx.Value(ownerKey{}).(*owner)
	return o
}
