package zklock

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// WithOwner returns a context that names a new owner, for re-entrancy: where Java has
// threads, Go has contexts. A Lock with this context, or one made from it, by the owner
// that holds the lock adds one to its hold count and returns at once; Unlock takes one
// off. Without an owner a second Lock waits, as that of [sync.Mutex] does. It serves the
// locks of this package and of rwlock.
func WithOwner(ctx context.Context) context.Context {
	misuse.Context(ctx, "zklock: WithOwner")
	return hold.WithOwner(ctx)
}
