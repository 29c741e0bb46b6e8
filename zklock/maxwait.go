package zklock

import (
	"context"
	"time"

	"github.com/turnstile-go/turnstile/internal/maxwait"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// WithMaxWait returns a context whose lock calls wait for d at most: Lock, Do, Acquire and their like, of all locks of
// this module. Each call has the whole of d, and a [MultiLock] has it for all of its locks. The work in a Do is not
// bounded, and the calls within its function wait for as long as their context lasts. So a handler can say "two seconds
// for the lock, ten for the work".
//
// A call that has waited for d fails with an error that matches [queue.ErrMaxWait], and neither
// [context.DeadlineExceeded] nor [context.Canceled] unless ctx has ended too. It leaves the queue, as at the end of
// ctx. A [queue.WaitError] in it says who was ahead. If d is 0 or less, a call fails at once. The shorter of several
// bounds does not count, but the last that was set.
func WithMaxWait(ctx context.Context, d time.Duration) context.Context {
	misuse.Context(ctx, "zklock: WithMaxWait")
	return maxwait.With(ctx, d)
}
