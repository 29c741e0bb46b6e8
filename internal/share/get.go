package share

import (
	"context"

	"github.com/turnstile-go/turnstile/queue"
)

// Acquire gets a lease: from the turns that goroutines share, or by a node of its own if turns is nil.
func Acquire(ctx context.Context, q *queue.Queue, r queue.Request, turns *Turns, try bool) (*queue.Lease, error) {
	switch {
	case turns != nil:
		return turns.Acquire(ctx, try)
	case try:
		return q.TryAcquire(ctx, r)
	}
	return q.Acquire(ctx, r)
}
