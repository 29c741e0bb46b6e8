package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
)

// Acquire waits until the contender may go, and returns the lease. It also returns when ctx ends,
// with an error that matches ctx.Err(), and when the manager is closed, with one that matches
// [session.ErrClosed]. If the session is lost in the meantime, Acquire goes on in the next session,
// at the end of the queue. Other errors: [ErrConflict], [ErrSequence],
// [session.ErrTooManyNodes], [session.ErrInvalid], and what the server refused, such as
// zk.ErrNoAuth.
//
// When Acquire returns an error, its node is deleted for certain. The delete may still be under
// way, but needs no further call. If ctx has ended before the call, Acquire sends nothing.
func (q *Queue) Acquire(ctx context.Context, r Request) (*Lease, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Acquire")
	return q.acquire(ctx, r, entry{})
}

// TryAcquire is Acquire without the wait for other contenders: if it would have to wait for
// one, it removes its node and returns [ErrBusy]. It still waits for the servers, and for a
// session, until ctx ends.
func (q *Queue) TryAcquire(ctx context.Context, r Request) (*Lease, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.TryAcquire")
	return q.acquire(ctx, r, entry{try: true})
}

func (q *Queue) acquire(ctx context.Context, r Request, how entry) (*Lease, error) {
	if err := r.complete(); err != nil {
		return nil, err
	}
	return q.traced(ctx, r, how.try, func(ctx context.Context, result *session.AcquireResult) (*Lease, error) {
		a, err := q.attempts(ctx, r, how, result)
		if err != nil {
			return nil, err
		}
		t := newTurn(ctx, a, nil)
		t.guard()
		return t.begin(ctx), nil
	})
}

// traced calls get between the two calls of the Acquire hook. If ctx has ended, it calls neither.
func (q *Queue) traced(ctx context.Context, r Request, try bool,
	get func(context.Context, *session.AcquireResult) (*Lease, error)) (*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("acquire %s: %w", q.dir, err)
	}
	ctx, end := traceAcquire(ctx, q.hooks(), session.AcquireInfo{
		Kind: r.Kind.Name, Chroot: plumbing.OfManager(q.m).Chroot(), Path: q.dir, Try: try,
	})
	result := session.AcquireResult{Position: -1}
	var l *Lease
	returned, told := false, false
	defer func() {
		switch {
		case told:
		case !returned: // get has panicked or ended the goroutine
			result.Err = errEnded
			end(result)
		case l != nil: // the hook has, and the caller does not get the lease
			l.abandon()
		}
	}()
	l, err := get(ctx, &result)
	returned = true
	switch {
	case errors.Is(err, ErrBusy):
		result.Busy = true
	case err != nil:
		result.Err = err
	}
	end(result)
	told = true
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", q.dir, err)
	}
	return l, nil
}

// attempts makes one attempt after another, until one is granted or fails for good.
func (q *Queue) attempts(ctx context.Context, r Request, how entry, result *session.AcquireResult) (*attempt, error) {
	if r.Data == nil {
		r.Data = nodeData(traceparent(ctx, q.hooks(), r.handedOn))
	}
	var outdated *attempt // the last attempt, if its place is to be renewed
	defer func() {
		if outdated != nil { // the user's backoff has ended the wait, or this goroutine
			outdated.leave(ctx, ctx.Err())
		}
	}()
	pace := rounds.Pace{New: plumbing.OfManager(q.m).Retry()}
	for {
		entry := how
		entry.renews, outdated = outdated, nil
		s, err := q.sessionFor(ctx, entry)
		if err != nil {
			return nil, err
		}
		result.Attempts++
		a := newAttempt(q, s, r, entry)
		err = a.run(ctx)
		result.Position = a.position
		if err == nil {
			return a, nil
		}
		switch entry.after(err) {
		case giveUp:
			return nil, err
		case renewPlace:
			outdated, how.placed = a, nil
		case enterAgain:
		case enterAfterLoss:
			traceRetry(ctx, q.hooks(), plumbing.OpAcquire, result.Attempts, err)
		}
		// If the session has ended, waiting for the next one is enough.
		if err := pace.Wait(ctx, s.Done()); err != nil {
			return nil, err
		}
	}
}

// afterwards is what follows an attempt that was not granted.
type afterwards int

const (
	giveUp         afterwards = iota
	renewPlace                // the attempt stands, and another takes its place
	enterAgain                // at the end of the queue
	enterAfterLoss            // the same, because the node or the session was lost
)

// after says what follows an attempt that failed with err.
func (e entry) after(err error) afterwards {
	switch {
	case errors.Is(err, errOutdated):
		return renewPlace
	case errors.Is(err, session.ErrTooManyNodes) && e.renews != nil:
		// The session counts both nodes for a moment, and has no room for two. The old node has
		// left, and its place is gone with it.
		return enterAgain
	case errors.Is(err, errDeleted):
		return enterAfterLoss
	case errors.Is(err, session.ErrLost) && e.beside == nil:
		return enterAfterLoss
	}
	return giveUp
}

// sessionFor returns the session for an attempt: that of the other lease or attempt if it shares
// or renews a place, otherwise the live one.
func (q *Queue) sessionFor(ctx context.Context, how entry) (*session.Session, error) {
	switch {
	case how.beside != nil:
		return how.beside.t.a.s, how.beside.Err()
	case how.renews != nil:
		return how.renews.s, nil
	}
	return q.m.Session(ctx)
}
