package zklock

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// WithOwner returns a context with a new owner, for re-entrancy: where Java has threads, Go has
// contexts. Calls with this context, or one derived from it, belong to that owner. If the owner
// holds a lock, its next Lock adds one to the hold count and returns at once, and each Unlock takes
// one off. Without an owner a second Lock waits, as that of [sync.Mutex] does.
//
// An owner is one task. Make the context where the task begins, and never in main: all goroutines with the context are the
// same owner, and would hold the lock beside each other.
//
// One owner can hold locks of this package and of rwlock, whose WithOwner does the same.
func WithOwner(ctx context.Context) context.Context {
	misuse.Context(ctx, "zklock: WithOwner")
	return hold.WithOwner(ctx)
}
