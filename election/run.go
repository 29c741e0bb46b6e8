package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Run campaigns for the leadership, calls lead when this candidate leads, and campaigns again when the
// term has ended, from the end of the queue. It goes on until ctx ends, a term fails or the manager is
// closed. It never returns nil.
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
// [WithTermEnd] replaces the first three rules. If a campaign and its term are over in less than 10 s, and
// so are the next, Run waits before the third campaign and each further one, for a random time that grows to
// at most a second.
//
// If ctx ends, Run gives the leadership up, or leaves the queue, and returns an error that matches ctx.Err(). It waits
// for lead to return, and then for a second at most for the servers to confirm. If lead has returned another error,
// Run's error matches both. If the manager is closed, Run returns an error that matches [session.ErrClosed]. A lost
// connection or session is no error, and [queue.WithMaxWait] bounds neither the campaign, which lasts for as long as
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
	ctx = queue.WithoutMaxWait(ctx) // a campaign waits for as long as another candidate leads
	pace := rounds.Pace{}
	for {
		if err := pace.Wait(ctx, nil); err != nil {
			return e.failed(err)
		}
		t, err := e.serve(ctx, lead)
		if t.passed && (err == nil || errors.Is(err, session.ErrLost)) {
			continue
		}
		if t.lease == nil {
			return e.failed(err)
		}
		again := e.decide(t, err)
		if ctx.Err() != nil {
			return e.failed(withEnd(again, ctx.Err()))
		}
		if again != nil {
			return again
		}
	}
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

// withEnd returns the error of a Run whose context has ended: that, and why the last term has failed,
// if it is something else.
func withEnd(failed, end error) error {
	if failed == nil || errors.Is(failed, end) {
		return end
	}
	return fmt.Errorf("%w; %w", end, failed)
}
