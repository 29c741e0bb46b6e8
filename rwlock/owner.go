package rwlock

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// WithOwner returns a context that names a new owner, for re-entrancy: where Java has
// threads, Go has contexts. It is that of zklock; an owner is one for the locks of both.
//
// Calls with this context, or one made from it, on one RWMutex are one owner's:
//
//   - who holds the write lock enters it again at once, and so does who holds the read lock,
//     also while a writer waits; each Lock needs its Unlock, and each RLock its RUnlock;
//   - who holds the write lock gets the read lock at once, and keeps it when it unlocks the
//     write lock, with no writer in between;
//   - who holds the read lock alone gets [ErrUpgrade] when it asks for the write lock.
//
// What counts is what is held when the call begins: calls of one owner at the same time
// wait for each other as those of several do. Without an owner every call is another's, as
// with [sync.RWMutex].
func WithOwner(ctx context.Context) context.Context {
	misuse.Context(ctx, "rwlock: WithOwner")
	return hold.WithOwner(ctx)
}
