package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/session"
)

// Acquire waits until the contender may go, and returns the lease. It also returns when ctx ends, with an error that
// matches ctx.Err() and says who was ahead, and when the manager is closed, with one that matches [session.ErrClosed].
// If the session is lost in the meantime, Acquire goes on in the next session, at the end of the queue. Other errors:
// [ErrConflict], [ErrSequence], [session.ErrTooManyNodes], [session.ErrInvalid], and what the server refused, such as
// zk.ErrNoAuth.
//
// When Acquire returns an error, its node is deleted for certain. The delete may still be under way, but needs no
// further call. If ctx has ended before the call, Acquire sends nothing.
func (q *Queue) Acquire(ctx context.Context, r Request) (*Lease, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Acquire")
	return q.acquire(ctx, r, false)
}

// TryAcquire is Acquire without the wait for other contenders: if it would have to wait for one, it returns [ErrBusy].
// It still waits for the servers, and for a session, until ctx ends.
//
// TryAcquire looks first. It lists the contenders behind a sync, in one round trip with the configuration if the kind
// has one. If they are in its way, that is all: it has written nothing. If they are not, it enters the queue as Acquire
// does, which takes a second round trip, and decides by the listing that shows its node. If it may not go then, it
// removes its node and returns ErrBusy. What it has seen before it entered never lets it go. If the server refuses to
// list the directory, TryAcquire returns that error, and has written nothing either.
//
// ErrBusy was true at a moment after the call began, as far as the servers knew, with two exceptions. A leader that has
// been cut off from the others, or that lags behind its own commits, can answer the sync and then show an old list. And
// a contender that only tries, and is about to leave, makes another one busy for a round trip.
//
// Places that other processes may only keep (zklock.WithLazyRelease) leave only for a node that they see. If all
// contenders in its way are such places, TryAcquire enters, and waits for them for a quarter of a second at most. Nodes
// of its own session that are about to be deleted do not count when it looks, and after it has entered it waits for them
// as for such places.
func (q *Queue) TryAcquire(ctx context.Context, r Request) (*Lease, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.TryAcquire")
	return q.acquire(ctx, r, true)
}

func (q *Queue) acquire(ctx context.Context, r Request, try bool) (*Lease, error) {
	return q.Acquiring(ctx, &r, try, func(ctx context.Context) (*Lease, Effort, error) {
		t, effort, err := q.Begin(ctx, r, try, nil)
		if err != nil {
			return nil, effort, err
		}
		return t.Lease(ctx, nil), effort, nil
	})
}

// Effort says what an acquisition took, for hooks.
type Effort struct {
	Attempts int // to enter; 0 if a turn of this process was used again
	Position int // contenders ahead at entry, or at the look of a try that was busy; -1 if there was no listing
}

// Acquiring surrounds the way to a lease: it checks r and completes it, bounds the wait ([WithMaxWait]), calls the hooks,
// and completes the error of get. get is not called if ctx has ended. It is for makers of locks that have more than one
// way to a lease. [Queue.Acquire] is made of it.
func (q *Queue) Acquiring(
	ctx context.Context, r *Request, try bool, get func(ctx context.Context) (*Lease, Effort, error),
) (*Lease, error) {
	if err := r.complete(); err != nil {
		return nil, failed("acquire", q.dir, err)
	}
	ctx, waited := BeginWait(ctx)
	if err := ctx.Err(); err != nil {
		return nil, waited(failed("acquire", q.dir, err))
	}
	ctx, end := q.traceAcquire(ctx, r, try)
	told := session.AcquireResult{Position: -1, Err: errCut} // if a policy or a hook panics
	defer func() { end(told) }()
	l, effort, err := get(ctx)
	told.Err, told.Attempts, told.Position = nil, effort.Attempts, effort.Position
	if err = waited(withCause(ctx, q.explain(ctx, err, nil))); err == nil {
		return l, nil
	}
	if told.Busy = errors.Is(err, ErrBusy); !told.Busy {
		told.Err = err
	}
	return nil, failed("acquire", q.dir, err)
}

// withCause adds to the text of an error, which says that ctx has ended, the cause that the caller has given
// (context.WithCancelCause). The error does not match the cause: that may be the loss of another lock.
func withCause(ctx context.Context, err error) error {
	ended, cause := ctx.Err(), context.Cause(ctx)
	if ended == nil || !errors.Is(err, ended) || hasWaited(ctx) || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %v", err, cause) //nolint:errorlint // see above
}

// Begin is Acquire, or TryAcquire, for a turn that several leases may have after each other. It calls no hooks of the
// acquisition, and its errors do not name the lock: [Queue.Acquiring] does both. shown tells others what the acquisition
// waits for; it may be nil. Begin is for makers of locks. r must be complete, as Acquiring leaves it.
func (q *Queue) Begin(ctx context.Context, r Request, try bool, shown *Waiting) (*Turn, Effort, error) {
	effort := Effort{Position: -1}
	if r.Data == nil {
		r.Data = q.nodeData(ctx, &r)
	}
	for pace := q.newPace(); ; {
		s, err := q.m.Session(ctx)
		if err != nil {
			return nil, effort, err
		}
		effort.Attempts++
		c := &contender{q: q, s: s, r: &r, shown: shown, position: -1}
		t, err := c.contend(ctx, try)
		effort.Position = c.position
		if err == nil || !isLoss(err) {
			return t, effort, err
		}
		q.traceRetry(ctx, effort.Attempts, err)
		if err := pace.Wait(ctx, s.Done()); err != nil { // if the session has ended, waiting for the next one is enough
			return nil, effort, err
		}
	}
}
