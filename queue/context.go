package queue

import (
	"context"
	"time"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/label"
	"github.com/turnstile-go/turnstile/internal/maxwait"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// WithLabel returns a context whose acquisitions have a label, such as "request 42". The label is in the
// contender's node, beside the id of the process, so that an operator sees what a lock is held for: see
// [Contender]. It is for locks of every kind.
//
// A label has at most 256 bytes. A longer one is shortened, and ends in "…". What cannot be printed is escaped, as
// "\x0a" for a line break: a label that comes from a request must not make the lock fail. Nodes with data of your
// own, such as those of an election, and nodes that several acquisitions share (zklock.WithLocalHandover) have no
// label. Hooks have it in any case.
func WithLabel(ctx context.Context, text string) context.Context {
	misuse.Context(ctx, "queue: WithLabel")
	return label.With(ctx, text)
}

// WithMaxWait returns a context whose calls wait for d at most. It bounds each call that waits for a lock of any kind,
// or for a connection on behalf of one: Lock, Do, Acquire and their tries, [Lease.Token], Contenders, zklock.Revoke,
// the limit of a semaphore (Limit, Resize, ResetLimit), the leader of an election (Leader, Term), and a job of package
// schedule until its function is called. Each call has the whole of d, and a zklock.MultiLock has it for all of its
// locks.
//
// The work under a lock is not bounded: neither the function of a Do, a term or a job, nor the calls in it, which wait
// for as long as their context lasts. The same holds for the context of [Lease.Context]. So a handler can say "two
// seconds for the lock, ten for the work". What lasts for as long as others like is not bounded either: the campaign
// of an election, and an observer. [Lease.Release] goes by the end of its context alone.
//
// A call that has waited for d fails with an error that matches [ErrMaxWait], and neither
// [context.DeadlineExceeded] nor [context.Canceled] unless ctx has ended too. It leaves the queue, as at the end of
// ctx. A [WaitError] in it says who was ahead. If d is 0 or less, a call that has to wait fails at once. The shorter
// of several bounds does not count, but the last that was set.
func WithMaxWait(ctx context.Context, d time.Duration) context.Context {
	misuse.Context(ctx, "queue: WithMaxWait")
	return maxwait.With(ctx, d)
}

// WithOwner returns a context with a new owner, for re-entrancy: where Java has threads, Go has contexts. Calls
// with this context, or one derived from it, belong to that owner. If the owner holds a lock, its next Lock adds
// one to the hold count and returns at once, and each Unlock takes one off. Without an owner a second Lock waits,
// as that of [sync.Mutex] does.
//
// An owner is one task. Make the context where the task begins, and never in main: all goroutines with the context
// are the same owner, and would hold the lock beside each other.
//
// One owner can hold locks of any number of packages. It enters again what it holds by Lock, Do or their tries: a
// mutex, a key of a zklock.Keyed, a zklock.MultiLock as a whole, and both sides of a read-write lock. An owner does
// not re-enter a semaphore: each call takes leases of its own. Acquire of any lock does not look at the owner: each
// call waits for a [Lease] of its own.
func WithOwner(ctx context.Context) context.Context {
	misuse.Context(ctx, "queue: WithOwner")
	return hold.WithOwner(ctx)
}
