// Package queueinternal is what package queue does for zklock, rwlock and semaphore and for nobody
// else: it is not in the public API.
//
//	wait := queueinternal.StartRelease(ctx, lease)
//	err := wait()
//
// This package cannot import queue, which imports it. So package queue sets the function variables
// here when it is initialized, and the types of queue are type parameters here. The functions panic
// if they get other types than those they name.
package queueinternal

import "context"

// What package queue provides. The functions are set before any importer of queue runs.
var (
	// OfLease returns the internal methods of l, which must be a *queue.Lease.
	OfLease func(l any) Lease
	// OfQueue returns the internal methods of q, which must be a *queue.Queue.
	OfQueue func(q any) Queue
)

// Lease has the internal methods of a queue.Lease. Use the functions of this package instead.
type Lease interface {
	StartRelease(ctx context.Context) (wait func() error)
	Beside(ctx context.Context, request any) (lease any, err error)
}

// Queue has the internal methods of a queue.Queue. Use the functions of this package instead.
type Queue interface {
	Config(ctx context.Context) (config any, err error)
	Reconfigure(ctx context.Context, pin string, keep bool, change any) error
}

// StartRelease is Release of a *queue.Lease without the wait for the server, so that several leases
// can be released right after each other. The caller must call the returned function once. It
// waits until ctx ends at most, and returns what Release would.
func StartRelease(ctx context.Context, l any) (wait func() error) {
	return OfLease(l).StartRelease(ctx)
}

// Beside takes another lease of the same queue next to l: at once, in the same session, with the
// same sequence number. Then both are held, and each is released on its own. The new lease has the
// Token of l, whose place it shares. L must be queue.Lease, and R queue.Request.
//
// It is for kinds whose Policy says, by Replaces, that one node may leave another in its place: a
// writer that becomes a reader, with no other contender in between. If l is of a queue.Local, its
// turn ends: the lock is not handed over after it.
//
// Beside fails with ctx's error. If l has ended, or ends in the meantime, it fails with the cause
// (session.ErrLost, queue.ErrReleased). It fails with session.ErrInvalid if the policy of l does not
// say by Replaces that its node may leave another in its place, or if the two kinds have different
// prefixes. Otherwise it fails as Acquire of a queue.Queue does.
func Beside[L, R any](ctx context.Context, l *L, request R) (*L, error) {
	beside, err := OfLease(l).Beside(ctx, request)
	if err != nil {
		return nil, err
	}
	return beside.(*L), nil
}

// Config returns the configuration of the directory of q, a *queue.Queue. C must be queue.Config. If
// there is no directory, Config returns the zero value. It fails with ctx's error, session.ErrClosed
// or what the server refuses.
func Config[C any](ctx context.Context, q any) (C, error) {
	config, err := OfQueue(q).Config(ctx)
	if err != nil {
		var none C
		return none, err
	}
	return config.(C), nil
}

// Reconfigure replaces the data of the directory of q, a *queue.Queue, by what change returns for the
// old data. C must be queue.Config. It makes the directory if there is none. Waiting contenders of a
// kind with Configured look again. change may be called several times.
//
// In the same transaction it creates or deletes a persistent child named pin. With keep the child is
// there, and the directory stays although nobody contends. Without keep it is not.
//
// Reconfigure fails with the error of change, ctx's error, session.ErrClosed or what the server
// refuses, and with session.ErrInvalid if pin is the name of a contender.
func Reconfigure[C any](ctx context.Context, q any, pin string, keep bool, change func(old C) ([]byte, error)) error {
	return OfQueue(q).Reconfigure(ctx, pin, keep, change)
}
