package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// term is one term of a leader, from its candidacy on.
type term struct {
	lease  *queue.Lease            // nil until the term has begun
	end    context.CancelCauseFunc // of the context of lead
	called error                   // ErrResigned once Resign has ended the term; guarded by Election.mu
	worked error                   // what lead has returned
	lasted time.Duration           // until then
	passed bool                    // the candidate was asked to resign before lead was called, so there was no term
}

// termKey is the context key of a term's lease.
type termKey struct{}

// serve campaigns once, and leads once. If the candidate did not get to lead, the term has no lease, and the error says
// why, or the candidate was asked to resign before lead was called. Otherwise the error says why the term has ended.
func (e *Election) serve(ctx context.Context, lead func(context.Context) error) (*term, error) {
	t := new(term)
	// The context of lead is derived from this one, so that it is the lease that makes it: a context that is
	// derived from the lease's does not look at the clock.
	ctx, t.end = context.WithCancelCause(ctx)
	defer t.end(nil)
	lease, err := e.queue.Acquire(ctx, e.request)
	if err != nil {
		return t, err
	}
	select {
	case <-lease.Revoked():
		t.passed = true
		return t, e.release(ctx, lease) // nobody has led, so there is nothing to wait for once ctx has ended
	default:
	}
	err = e.hold(ctx, lease, func(ctx context.Context) error {
		defer e.over()
		e.begin(t, lease)
		go e.listen(t)
		began := time.Now()
		t.worked = lead(context.WithValue(ctx, termKey{}, lease))
		t.lasted = time.Since(began)
		return t.worked
	})
	if t.lease != nil && err != nil && !errors.Is(t.lease.Err(), queue.ErrReleased) { // lost, or the manager was closed
		err = e.failed(err)
	}
	switch {
	case t.called == nil:
		return t, err
	case err == nil, err == context.Canceled: //nolint:errorlint // and not what wraps it, which says more
		return t, e.failed(t.called)
	}
	return t, e.failed(fmt.Errorf("%w: %w", t.called, err))
}

// begin makes t the term of this candidate.
func (e *Election) begin(t *term, lease *queue.Lease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t.lease = lease
	e.now = t
}

// listen ends the term if another client asks the leader to resign. It returns when the lease has ended.
func (e *Election) listen(t *term) {
	select {
	case <-t.lease.Revoked():
		e.resign(t)
	case <-t.lease.Done():
	}
}

// over says that lead has returned: nothing can end its term any more.
func (e *Election) over() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now = nil
}

// cut reports whether the term has ended before lead returned, by a loss or by Resign.
func (t *term) cut() bool {
	return t.called != nil || errors.Is(t.lease.Err(), session.ErrLost)
}

// Term returns the fencing token of the term that ctx belongs to: a number that is higher than those of
// all terms before at this path. ctx is the context that [Election.Run] has passed to its function, or
// one that is derived from it. A store that the leader writes to can compare tokens, and refuse a lower
// one than it has seen: package [github.com/turnstile-go/turnstile/fence] does that in SQL databases.
// Writes to ZooKeeper itself can use the guard of the lease instead: see [queue.LeaseFrom] and
// [queue.Lease.Guard].
//
// Term waits for the server if the token is not known yet. It fails as [queue.Lease.Token] does, and
// with an error that matches [session.ErrInvalid] if ctx belongs to no term.
func Term(ctx context.Context) (int64, error) {
	misuse.Context(ctx, "election: Term")
	lease, ok := ctx.Value(termKey{}).(*queue.Lease)
	if !ok {
		return 0, fmt.Errorf("election: %w: the context is not that of a leader", session.ErrInvalid)
	}
	return lease.Token(ctx)
}

// ErrResigned is the cause of the end of a leader's context after [Election.Resign], and the error of
// its term.
var ErrResigned = errors.New("resigned")

// Resign ends the term of this candidate from outside: the context of the function that
// [Election.Run] has called ends, with the cause [ErrResigned]. The candidate leads until that function
// returns. Then it campaigns again, from the end of the queue, unless [WithTermEnd] decides otherwise. To
// leave the election, end the context of Run instead.
//
// Resign does not wait. It reports whether there was a term to end. A candidate in the queue keeps its
// place.
//
// Another process asks the leader to resign with zklock.Revoke of the leader's node, which has the same effect. Its
// path is in what [Election.Leader] returns. To wait until another candidate leads, use [Election.Observe].
func (e *Election) Resign() bool { return e.made().resign(nil) }

// resign ends the present term. If t is not nil, only that term counts. It reports whether there was one to end.
func (e *Election) resign(t *term) bool {
	e.mu.Lock()
	now := e.now
	if now == nil || t != nil && now != t {
		e.mu.Unlock()
		return false
	}
	now.called = ErrResigned
	e.mu.Unlock()
	now.end(ErrResigned)
	return true
}
