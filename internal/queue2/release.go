package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// Releasing is a release under way: see [Lease.StartRelease]. Its caller calls one of the methods, once. It is for makers
// of locks.
type Releasing struct {
	l       *Lease
	lost    error            // why the lease had ended before; nil if this release has ended it
	removal *session.Removal // nil if there is nothing to wait for
	end     func(error)      // of the Release hook
}

// StartRelease ends the lease and sends the delete, or hands the turn over, and waits for nothing. So several leases can
// be released right after each other. ctx is for hooks.
func (l *Lease) StartRelease(ctx context.Context) *Releasing {
	r := &Releasing{l: l, lost: l.made().Err(), end: func(error) {}} // if the clock has run out, the lease was lost before
	if r.lost == nil && !l.finish(ErrReleased) {
		r.lost = l.over.why()
	}
	switch {
	case errors.Is(r.lost, ErrReleased):
		return r
	case r.lost == nil:
		l.tellEnd(nil)
	}
	ctx, r.end = l.traceRelease(ctx)
	if r.lost == nil {
		r.removal = l.back(ctx)
	}
	return r
}

// Wait waits for the servers' answer until ctx ends. It returns what [Lease.Release] does.
func (r *Releasing) Wait(ctx context.Context) error {
	if r.removal != nil {
		select {
		case <-r.removal.Done():
		case <-ctx.Done():
			return r.conclude(fmt.Errorf("%w: %w", ErrReleasePending, ctx.Err()))
		}
	}
	return r.conclude(r.outcome())
}

// Unlock waits for the servers' answer, but for no connection, and for the given time at most, which begins when there is
// something to wait for. If there is no answer by then, or if the session has ended, Unlock returns nil: the node goes
// without any further call. The log and the Release hook are told how it went.
func (r *Releasing) Unlock(patience func() <-chan time.Time) error {
	if r.removal == nil {
		return r.conclude(nil)
	}
	select {
	case <-r.removal.Done():
	case <-r.removal.Cut():
	case <-patience():
	}
	select { // both may have happened
	case <-r.removal.Done():
	default:
		r.tellLater(true)
		return nil
	}
	err := r.conclude(r.outcome())
	if errors.Is(err, ErrReleasePending) {
		r.log(err, 0)
		return nil
	}
	return err
}

// Leave waits for nothing. Only the Release hook is told what the servers say, and the log of a refusal.
func (r *Releasing) Leave() error {
	if r.removal == nil {
		return r.conclude(nil)
	}
	if r.l.t.q.m.Trace().Release != nil {
		r.tellLater(false)
	}
	return nil
}

// tellLater has the Release hook, and the log if the caller has waited in vain, told once the servers have answered or the
// session has ended.
func (r *Releasing) tellLater(logged bool) {
	began := time.Now()
	go func() {
		<-r.removal.Done()
		err := r.outcome()
		if logged {
			r.log(err, time.Since(began))
		}
		_ = r.conclude(err)
	}()
}

// log tells of a release that Unlock has not waited for. The session logs that a server has refused.
func (r *Releasing) log(err error, took time.Duration) {
	t := r.l.t
	to := []any{"lock", t.q.dir, "node", t.node.Path, "session", hexID(t.s)}
	switch {
	case err == nil:
		t.q.m.Logger().Info("zookeeper has confirmed the release of a lock, which Unlock did not wait for",
			append(to, "after", took.Round(time.Millisecond))...)
	case errors.Is(err, ErrReleasePending):
		t.q.m.Logger().Warn("the session has ended before zookeeper confirmed the release of a lock; its node goes with the session", to...)
	}
}

// outcome returns what came of the removal, which has ended.
func (r *Releasing) outcome() error {
	if r.removal == nil {
		return nil
	}
	err := r.removal.Err()
	if err != nil && r.l.t.s.Err() != nil {
		return fmt.Errorf("%w: %w", ErrReleasePending, err)
	}
	return err
}

// conclude tells the Release hook how the release has ended, and returns the error for the caller.
func (r *Releasing) conclude(err error) error {
	if r.lost != nil {
		err = r.lost
	}
	r.end(err)
	if err == nil || r.lost != nil && !errors.Is(r.lost, ErrReleased) { // the error of a loss names the lock
		return err
	}
	return failed("release", r.l.t.q.dir, err)
}
