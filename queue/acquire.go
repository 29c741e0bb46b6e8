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

// Acquire waits for its turn and returns the lease. It returns when granted; when ctx
// ends, with an error that matches ctx.Err(); or when the manager is closed, with one
// that matches [session.ErrClosed]. A connection or session that is lost meanwhile is
// not the caller's business: it goes on, in the new session at the end of the queue.
// Other errors: [ErrConflict], [ErrSequence], [session.ErrTooManyNodes],
// [session.ErrInvalid], and what the server refused, such as zk.ErrNoAuth.
//
// Whatever the error, no node is left: its removal may still be under way when Acquire
// returns, but needs nobody's help. A ctx that has ended before sends nothing.
func (q *Queue) Acquire(ctx context.Context, r Request) (*Lease, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Acquire")
	return q.acquire(ctx, r, entry{})
}

// TryAcquire is Acquire without the wait for others: where it would have to wait it
// removes its node and returns [ErrBusy]. It still waits for the servers, and for a
// session, as ctx allows.
func (q *Queue) TryAcquire(ctx context.Context, r Request) (*Lease, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.TryAcquire")
	return q.acquire(ctx, r, entry{try: true})
}

// Beside takes another lease of the same queue next to this one: at once, in the same
// session, with the same sequence number. Both are held then, and each is released by
// itself, and both have the Token of this lease, whose place they share. That is for kinds whose
// Policy says, by Replaces, that the one may leave the other in its place: a writer that becomes
// a reader, with nobody in between. Of a [Local] it ends the turn: this lease is handed on to
// nobody.
//
// It fails with ctx's error; with the cause ([session.ErrLost], [ErrReleased]) if this
// lease has ended or ends meanwhile; with [session.ErrInvalid] if the policy of this lease
// does not say by Replaces that its node may leave another in its place, or the two kinds have
// different prefixes; and as [Queue.Acquire] does otherwise.
func (l *Lease) Beside(ctx context.Context, r Request) (*Lease, error) {
	l.made()
	misuse.Context(ctx, "queue: Lease.Beside")
	if err := r.complete(); err != nil {
		return nil, err
	}
	if err := l.t.a.checkBeside(r.Kind); err != nil {
		return nil, err
	}
	if l.t.local != nil && l.Err() == nil {
		// The next one of this process would hold together with what is taken here.
		l.t.local.last(l.t)
	}
	return l.t.a.q.acquire(ctx, r, entry{beside: l})
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

// traced surrounds an acquisition with its hook. A ctx that has ended acquires nothing.
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
	got, told := false, false
	defer func() {
		switch {
		case told:
		case !got:
			result.Err = errEnded
			end(result)
		case l != nil:
			l.abandon()
		}
	}()
	l, err := get(ctx, &result)
	got = true
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

// attempts enters the queue until an attempt is granted, or ends in something other than
// the loss of its session or of its node.
func (q *Queue) attempts(ctx context.Context, r Request, how entry, result *session.AcquireResult) (*attempt, error) {
	if r.Data == nil {
		r.Data = nodeData(traceparent(ctx, q.hooks(), r.handedOn))
	}
	var outdated *attempt // whose place is to be renewed; nil: none
	defer func() {
		if outdated != nil { // the user's backoff has ended the wait, or this goroutine
			outdated.leave(ctx, ctx.Err())
		}
	}()
	again := rounds.Pace{New: plumbing.OfManager(q.m).Retry()}
	for {
		entry := how
		entry.renews, outdated = outdated, nil
		s, err := q.sessionFor(ctx, entry)
		if err != nil {
			return nil, err
		}
		result.Attempts++
		a := newAttempt(q, s, r, entry)
		run := a.run
		if r.Kind.Unfair {
			run = a.barge
		}
		err = run(ctx)
		result.Position = a.position
		switch {
		case err == nil:
			return a, nil
		case errors.Is(err, errOutdated):
			outdated, how.first = a, nil
		case errors.Is(err, session.ErrTooManyNodes) && entry.renews != nil:
			// There is no room for two nodes: the old one has gone, and its place with it.
		case errors.Is(err, errDeleted), errors.Is(err, session.ErrLost) && how.beside == nil:
			traceRetry(ctx, q.hooks(), plumbing.OpAcquire, result.Attempts, err)
		default:
			return nil, err
		}
		// Where the session has ended the manager's wait for the next one is enough.
		if err := again.Wait(ctx, s.Done()); err != nil {
			return nil, err
		}
	}
}

// sessionFor returns the live session, or that of the lease beside which to enter, or of the
// attempt whose place is to be renewed.
func (q *Queue) sessionFor(ctx context.Context, how entry) (*session.Session, error) {
	switch {
	case how.beside != nil:
		return how.beside.t.a.s, how.beside.Err()
	case how.renews != nil:
		return how.renews.s, nil
	}
	return q.m.Session(ctx)
}
