package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/label"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
)

// Acquire waits until the contender may go, and returns the lease. It also returns when ctx ends,
// with an error that matches ctx.Err() and says who was ahead, and when the manager is closed, with
// one that matches [session.ErrClosed]. After a wait of less than 20 ms, the first error only names a node. If
// the session is lost in the meantime, Acquire goes on in the next session, at the end of the queue. Other errors: [ErrConflict], [ErrSequence],
// [session.ErrTooManyNodes], [session.ErrInvalid], and what the server refused, such as
// zk.ErrNoAuth.
//
// When Acquire returns an error, its node is deleted for certain. The delete may still be under
// way, but needs no further call. If ctx has ended before the call, Acquire sends nothing.
func (q *Queue) Acquire(ctx context.Context, r Request) (*Lease, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Acquire")
	return q.acquire(ctx, &r, &entry{})
}

// TryAcquire is Acquire without the wait for other contenders: if it would have to wait for
// one, it removes its node and returns [ErrBusy]. It still waits for the servers, and for a
// session, until ctx ends.
func (q *Queue) TryAcquire(ctx context.Context, r Request) (*Lease, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.TryAcquire")
	return q.acquire(ctx, &r, &entry{try: true})
}

func (q *Queue) acquire(ctx context.Context, r *Request, how *entry) (*Lease, error) {
	if err := r.complete(); err != nil {
		return nil, err
	}
	return q.traced(ctx, r, how.try, func(ctx context.Context, result *session.AcquireResult) (*Lease, error) {
		return q.get(ctx, r, how, result)
	})
}

// get waits until an attempt is granted, and begins the hold.
func (q *Queue) get(ctx context.Context, r *Request, how *entry, result *session.AcquireResult) (*Lease, error) {
	a, err := q.attempts(ctx, r, how, result)
	if err != nil {
		return nil, err
	}
	return a.hold(ctx), nil
}

// hold begins the hold of an attempt that was granted.
func (a *attempt) hold(ctx context.Context) *Lease {
	t := newTurn(ctx, a, nil)
	t.guard()
	return t.begin(ctx)
}

// traced calls get between the two calls of the Acquire hook. If ctx has ended or has a bad label,
// it calls neither.
func (q *Queue) traced(ctx context.Context, r *Request, try bool,
	get func(context.Context, *session.AcquireResult) (*Lease, error)) (*Lease, error) {
	c, err := q.call(ctx, r, try)
	if err != nil {
		return nil, err
	}
	defer c.cut()
	l, err := get(c.ctx, &c.result)
	return c.conclude(l, err)
}

// call is an acquisition between the two calls of the Acquire hook.
type call struct {
	q      *Queue
	ctx    context.Context // of the hook
	end    func(session.AcquireResult)
	result session.AcquireResult
	over   bool // end was called
}

// noCall returns a call that has not begun.
func (q *Queue) noCall() *call { return &call{q: q, over: true} }

// call calls the Acquire hook, unless ctx has ended or has a bad label. The caller calls conclude,
// and cut in any case.
func (q *Queue) call(ctx context.Context, r *Request, try bool) (*call, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("acquire %s: %w", q.dir, err)
	}
	if err := checkLabel(label.From(ctx)); err != nil {
		return nil, err
	}
	c := &call{q: q, result: session.AcquireResult{Position: -1}}
	c.ctx, c.end = traceAcquire(ctx, q.hooks(), session.AcquireInfo{
		Kind: r.Kind.Name, Chroot: plumbing.OfManager(q.m).Chroot(), Path: q.dir, Try: try,
		Weight: r.Weight, Local: r.handedOn,
	})
	return c, nil
}

// conclude tells the hook how the acquisition has ended, and returns what the caller gets. It does nothing
// if the call is over.
func (c *call) conclude(l *Lease, err error) (*Lease, error) {
	if c.over {
		return l, err
	}
	told := false
	defer func() {
		if l != nil && !told { // the hook has panicked, and the caller does not get the lease
			l.abandon()
		}
	}()
	switch {
	case errors.Is(err, ErrBusy):
		c.result.Busy = true
	case err != nil:
		c.result.Err = err
	}
	c.over = true
	c.end(c.result)
	told = true
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", c.q.dir, err)
	}
	return l, nil
}

// cut tells the hook that the acquisition was cut short by a panic or the end of the goroutine. It
// does nothing after conclude.
func (c *call) cut() {
	if !c.over {
		c.over = true
		c.result.Err = errEnded
		c.end(c.result)
	}
}

// attempts makes one attempt after another, until one is granted or fails for good. With errAhead it returns the
// attempt that stands. It sets the data of r, and
// changes how: neither may be used by another acquisition.
func (q *Queue) attempts(ctx context.Context, r *Request, how *entry, result *session.AcquireResult) (*attempt, error) {
	var outdated *attempt // the last attempt, if its place is to be renewed
	defer func() {
		if outdated != nil { // the user's backoff has ended the wait, or this goroutine
			outdated.leave(ctx, ctx.Err())
		}
	}()
	pace := rounds.Pace{New: plumbing.OfManager(q.m).Retry()}
	for {
		if r.Data == nil && how.stands == nil { // no hook must run before the attempt that stands does
			r.Data = r.describe(ctx, q.hooks()).encode()
		}
		how.renews, outdated = outdated, nil
		a, err := q.attempt(ctx, r, how, result)
		if err != nil {
			return nil, err
		}
		how.stands = nil
		err = a.run(ctx)
		result.Position = a.position
		if err == nil {
			return a, nil
		}
		switch how.after(err) {
		case stand:
			return a, err
		case giveUp:
			return nil, a.explain(ctx, err)
		case renewPlace:
			outdated, how.placed = a, nil
		case enterAgain:
		case enterAfterLoss:
			traceRetry(ctx, q.hooks(), plumbing.OpAcquire, result.Attempts, err)
		}
		// If the session has ended, waiting for the next one is enough.
		if err := pace.Wait(ctx, a.s.Done()); err != nil {
			return nil, err
		}
	}
}

// attempt returns the next attempt to run: a new one, or the one that stands in the queue already.
func (q *Queue) attempt(ctx context.Context, r *Request, how *entry, result *session.AcquireResult) (*attempt, error) {
	if a := how.stands; a != nil {
		a.entry = *how
		return a, nil
	}
	s, err := q.sessionFor(ctx, how)
	if err != nil {
		return nil, err
	}
	q.yield(s, r)
	result.Attempts++
	return newAttempt(q, s, r, how), nil
}

// afterwards is what follows an attempt that was not granted.
type afterwards int

const (
	giveUp         afterwards = iota
	renewPlace                // the attempt stands, and another takes its place
	stand                     // the attempt stands, for the caller
	enterAgain                // at the end of the queue
	enterAfterLoss            // the same, because the node or the session was lost
)

// after says what follows an attempt that failed with err.
func (e *entry) after(err error) afterwards {
	switch {
	case errors.Is(err, errAhead):
		return stand
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
func (q *Queue) sessionFor(ctx context.Context, how *entry) (*session.Session, error) {
	switch {
	case how.beside != nil:
		return how.beside.t.s, how.beside.Err()
	case how.renews != nil:
		return how.renews.s, nil
	}
	return q.m.Session(ctx)
}
