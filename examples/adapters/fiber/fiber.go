// Package fiber has replicas share the locks of the idempotency middleware of github.com/gofiber/fiber/v3, beside the
// storage of answers that they share. Of two requests with one key, at whichever replicas, one runs the handler, and the
// other gets its answer.
//
// The interface, idempotency.Locker, cannot carry a loss: the handler does not get the lock, and the middleware stores the
// answer without a look at it. So after a loss a second request can run the handler beside the first one. [Locker.Context]
// gives the handler what the interface does not: a context that ends with the lock. A handler that must not be repeated
// at all makes the key unique in the transaction of its work.
//
// The middleware knows no bound for the wait either. WithMaxWait of the context that is given to [New] sets one: the
// request that has waited for so long fails with status 500 unless the application's ErrorHandler knows queue.ErrMaxWait.
package fiber

import (
	"context"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Locker is an idempotency.Locker.
type Locker struct {
	ctx   context.Context // the interface has none
	locks *zklock.Keyed
}

// New returns a Locker with the locks of all replicas. The end of ctx ends the waits of requests, at a shutdown.
func New(ctx context.Context, locks *zklock.Keyed) *Locker { return &Locker{ctx, locks} }

// Lock waits for the lock of a key.
func (l *Locker) Lock(key string) error { return l.locks.Lock(l.ctx, key) }

// Unlock gives it back. The error says if it was lost, which the middleware only logs: the handler has answered.
func (l *Locker) Unlock(key string) error { return l.locks.Unlock(key) }

// Context returns a context for the handler of a request with a key, which ends when the lock of the key is lost. The
// handler calls the function when it is done.
func (l *Locker) Context(parent context.Context, key string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	lost := l.locks.Done(key) // of the present hold, which is that of this request
	go func() {
		select {
		case <-lost:
			cancel(session.ErrLost)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}
