package rwlock

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// WithOwner returns a context with a new owner, for re-entrancy: where Java has threads, Go has
// contexts. It is zklock.WithOwner: one owner can hold locks of both packages.
//
// An owner is one task. Make the context where the task begins, and never in main: all goroutines with the context are the
// same owner, and would hold the lock beside each other.
//
// Calls on one RWMutex with this context, or one derived from it, belong to that owner:
//
//   - An owner that holds the write lock gets it again at once. So does an owner that holds the read
//     lock and asks for it again, even while a writer waits. Each Lock needs its Unlock, and each RLock
//     its RUnlock.
//   - An owner that holds the write lock gets the read lock at once. It keeps the read lock when it
//     unlocks the write lock, with no writer in between.
//   - An owner that holds only the read lock gets [ErrUpgrade] when it asks for the write lock.
//
// What counts is what the owner holds when the call begins. Calls of one owner at the same time wait
// for each other like those of different owners. Calls without an owner are independent, as with
// [sync.RWMutex].
func WithOwner(ctx context.Context) context.Context {
	misuse.Context(ctx, "rwlock: WithOwner")
	return hold.WithOwner(ctx)
}
