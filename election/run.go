package election

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Run campaigns for the leadership, calls lead when this candidate leads, and campaigns again when the
// term has ended, from the end of the queue. It goes on until ctx ends, a term fails or the manager is
// closed.
//
// The context of lead ends when ctx ends, when the leadership is lost, on [Election.Resign] by this process or another,
// and when the manager is closed. [context.Cause] tells which: the cause of a loss matches [session.ErrLost]. If the
// leadership is lost with the session, the context ends before another candidate can lead. If ctx ends or on Resign,
// the candidate leads until lead returns. So lead should return as soon as its context has ended. Run calls lead in its
// own goroutine, and does not campaign while lead runs. [Term] returns the fencing token of the term, and
// [queue.LeaseFrom] its lease.
//
// A term ends in one of these ways:
//
//   - lead returns nil: the candidate resigns, and Run campaigns again.
//   - The leadership is lost, or Resign is called: Run campaigns again when lead has returned, whatever
//     lead returns.
//   - lead returns an error: the candidate gives the leadership up, and Run returns that error.
//   - lead panics or ends its goroutine: the candidate gives the leadership up, and the panic goes on.
//
// [WithTermEnd] replaces the first three rules. A candidate that cannot lead lets others lead: if lead returns an error
// within 10 s, this Election stands again only after a wait, also in another Run. The wait is random, up to a bound that
// doubles each time, by [session.WithBackoff]: from 50 ms to half a session timeout by default. A term that lasts for longer
// begins anew with the shortest wait. If a campaign and its term are over in less than 10 s for another reason, and
// so are the next, Run waits before the third campaign and each further one, for a random time that grows to
// at most a second.
//
// Run returns nil at a shutdown: when ctx is cancelled, or when the manager is closed while Run goes on. It gives the
// leadership up, or leaves the queue. It waits for lead to return, and then for a second at most for the servers to
// confirm. It returns nil also if lead returns the error of its context, but not if lead returns another error: then Run's
// error matches that one, and the end of ctx or session.ErrClosed. The end of a deadline is no shutdown: Run
// returns an error that matches [context.DeadlineExceeded]. A Run whose manager was closed before returns an error that
// matches [session.ErrClosed].
//
// A lost connection or session is no error, and [queue.WithMaxWait] bounds neither the campaign, which lasts for as long as
// another candidate leads, nor the term. Other errors are [queue.ErrConflict], [queue.ErrSequence],
// [session.ErrTooManyNodes], what the server refuses, such as zk.ErrNoAuth, and [session.ErrInvalid] if lead is nil or
// another Run of this Election has not returned.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	e.made()
	misuse.Context(ctx, "election: Election.Run")
	if lead == nil {
		return e.failed(fmt.Errorf("%w: Run of a nil function", session.ErrInvalid))
	}
	if !e.start() {
		return e.failed(fmt.Errorf("%w: another Run has not returned", session.ErrInvalid))
	}
	defer e.stop()
	if e.Manager().State() == session.Closed && ctx.Err() == nil {
		return e.failed(session.ErrClosed)
	}
	ctx = queue.WithoutMaxWait(ctx) // a campaign waits for as long as another candidate leads
	pace := rounds.Pace{}
	for {
		if err := pace.Wait(ctx, e.Manager().Done()); err != nil {
			return e.ended(err)
		}
		if err := e.rest.wait(ctx, e.Manager()); err != nil {
			return e.ended(err)
		}
		t, err := e.serve(ctx, lead)
		if t.passed && (err == nil || errors.Is(err, session.ErrLost)) {
			continue
		}
		if t.lease == nil {
			return e.ended(err)
		}
		e.rest.after(t, e.Manager())
		again := e.decide(t, err)
		switch end := ctx.Err(); {
		case end != nil && (again == nil || isEnd(again, end)):
			return e.ended(end)
		case end != nil:
			return e.failed(fmt.Errorf("%w; %w", end, again))
		case again != nil && errors.Is(t.lease.Err(), session.ErrClosed) && isEnd(again, session.ErrClosed):
			return nil
		case again != nil:
			return again
		}
	}
}

// isEnd reports whether an error says no more than that a context has ended, or the manager was closed.
func isEnd(err, end error) bool {
	switch e := err.(type) { //nolint:errorlint // one step at a time
	case *endError:
		return isEnd(e.end, end) && isEnd(e.work, end)
	case interface{ Unwrap() []error }:
		all := e.Unwrap()
		return len(all) > 0 && !slices.ContainsFunc(all, func(err error) bool { return !isEnd(err, end) })
	case interface{ Unwrap() error }:
		return isEnd(e.Unwrap(), end)
	}
	return errors.Is(err, end) || errors.Is(err, context.Canceled) || errors.Is(err, session.ErrClosed)
}

// ended returns the error of a Run that has ended without an error of a term: nil at a shutdown.
func (e *Election) ended(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, session.ErrClosed) {
		return nil
	}
	return e.failed(err)
}

// start reports whether no other Run is under way.
func (e *Election) start() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return false
	}
	e.running = true
	return true
}

func (e *Election) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = false
}

// decide returns nil if Run campaigns again after a term that has ended with err.
func (e *Election) decide(t *term, err error) error {
	switch {
	case e.termEnd != nil:
		return e.termEnd(err)
	case t.cut():
		return nil
	}
	return err
}
