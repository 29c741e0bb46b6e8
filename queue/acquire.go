package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
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
// removes its node and returns ErrBusy. If the server refuses to list the directory, TryAcquire returns that error, and
// has written nothing either.
//
// ErrBusy was true at a moment after the call began, as far as the servers knew, with two exceptions. A leader that has
// been cut off from the others, or that lags behind its own commits, can answer the sync and then show an old list. And
// a contender that only tries, and is about to leave, makes another one busy for a round trip.
//
// Places that other processes may only keep (zklock.WithLazyRelease) leave only for a node that they see. If all
// contenders in its way are such places, or nodes of its own session that are about to be deleted, TryAcquire enters, and
// waits for them for a quarter of a second at most.
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

// Acquiring surrounds the way to a lease: it is [Queue.StartAcquiring], get, and the end of that. get is not called if ctx has
// ended. It is for makers of locks that have more than one way to a lease. [Queue.Acquire] is made of it.
func (q *Queue) Acquiring(
	ctx context.Context, r *Request, try bool, get func(ctx context.Context) (*Lease, Effort, error),
) (*Lease, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Acquiring")
	ctx, end, err := q.StartAcquiring(ctx, r, try)
	if err != nil {
		return nil, err
	}
	ended := false
	defer func() {
		if !ended { // a policy or a hook panics
			_, _ = end(nil, Effort{Position: -1}, errCut)
		}
	}()
	l, effort, err := get(ctx)
	ended = true
	return end(l, effort, err)
}

// StartAcquiring begins an acquisition: it checks r and completes it, bounds the wait ([WithMaxWait]) and calls the hooks. It
// fails if ctx has ended. The caller gets the lease within the context that StartAcquiring returns, and calls end once, with
// what it has got. end tells the hooks, and returns the lease, or the error for the caller of the acquisition. It is for
// makers of locks that begin several acquisitions at once; others use [Queue.Acquiring].
func (q *Queue) StartAcquiring(
	ctx context.Context, r *Request, try bool,
) (inside context.Context, end func(*Lease, Effort, error) (*Lease, error), err error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.StartAcquiring")
	if err := r.complete(); err != nil {
		return nil, nil, failed("acquire", q.dir, err)
	}
	ctx, waited := BeginWait(ctx)
	if err := ctx.Err(); err != nil {
		return nil, nil, waited(failed("acquire", q.dir, err))
	}
	ctx, tell := q.traceAcquire(ctx, r, try)
	return ctx, func(l *Lease, effort Effort, err error) (*Lease, error) {
		told := session.AcquireResult{Attempts: effort.Attempts, Position: effort.Position}
		if err == nil {
			_ = waited(nil)
			tell(told)
			return l, nil
		}
		err = waited(withCause(ctx, q.explain(ctx, err, nil)))
		if told.Busy = errors.Is(err, ErrBusy); !told.Busy {
			told.Err = err
		}
		tell(told)
		return nil, failed("acquire", q.dir, err)
	}, nil
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
// waits for; it may be nil. Begin is for makers of locks.
func (q *Queue) Begin(ctx context.Context, r Request, try bool, shown *Waiting) (*Turn, Effort, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Begin")
	waits := forAll
	if try {
		waits = forKept
	}
	return q.begin(ctx, &r, waits, try, shown)
}

// BeginAtOnce is Begin for one of several locks that are taken at once, or not at all. It enters, and returns [ErrBusy] if it
// may not go by the listing of that. With try it waits for kept places as a try does, and otherwise for nobody. It does not
// look before it enters: its caller does that by [Queue.Look]. It completes r, for a Begin after it.
func (q *Queue) BeginAtOnce(ctx context.Context, r *Request, try bool) (*Turn, Effort, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.BeginAtOnce")
	waits := forNobody
	if try {
		waits = forKept
	}
	return q.begin(ctx, r, waits, false, nil)
}

// Look is the look of a try before it enters: see [Queue.TryAcquire]. It returns [ErrBusy] if others are in the way. It writes
// nothing, and what it has seen lets nobody go. The Effort has their number. r must be complete, as for Begin.
func (q *Queue) Look(ctx context.Context, r Request) (Effort, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Look")
	effort := Effort{Position: -1}
	err := q.inSession(ctx, rounds.NewPace(q.m.Backoff()), func(ctx context.Context, s *session.Session) error {
		c := q.newContender(s, &r)
		err := c.lookFirst(ctx)
		effort.Position = c.position
		return err
	})
	return effort, err
}

// begin takes one node after another through the queue, until one is granted. With look each of them looks before it enters.
func (q *Queue) begin(
	ctx context.Context, r *Request, waits whom, look bool, shown *Waiting,
) (t *Turn, effort Effort, err error) {
	effort.Position = -1
	if err := r.complete(); err != nil {
		return nil, effort, err
	}
	if r.Data == nil {
		r.Data = q.nodeData(ctx, r)
	}
	err = q.inSession(ctx, rounds.NewPace(q.m.Backoff()), func(ctx context.Context, s *session.Session) (err error) {
		effort.Attempts++
		c := q.newContender(s, r)
		c.shown = shown
		if look {
			err = c.lookFirst(ctx)
		}
		if err == nil {
			t, err = c.contend(ctx, waits)
		}
		effort.Position = c.position
		if isLoss(err) {
			q.traceRetry(ctx, effort.Attempts, err)
		}
		return err
	})
	return t, effort, err
}
