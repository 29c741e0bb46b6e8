package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/session"
)

// Releasing is a release under way: see [Lease.StartRelease]. Its caller calls one of the methods, once. It is for makers
// of locks.
type Releasing struct {
	_ misuse.NoCopy

	l       *Lease
	lost    error            // why the lease had ended before; nil if this release has ended it
	removal *session.Removal // nil if there is nothing to wait for
	end     func(error)      // of the Release hook
}

// StartRelease ends the lease and sends the delete, or hands the turn over, and waits for nothing. So several leases can
// be released right after each other. ctx is for hooks.
func (l *Lease) StartRelease(ctx context.Context) *Releasing {
	l.made()
	misuse.Context(ctx, "queue: Lease.StartRelease")
	return l.startRelease(ctx, true)
}

// StartGiveUp is StartRelease for a lease that no caller has got. So the place is not kept.
func (l *Lease) StartGiveUp(ctx context.Context) *Releasing {
	l.made()
	misuse.Context(ctx, "queue: Lease.StartGiveUp")
	return l.startRelease(ctx, false)
}

func (l *Lease) startRelease(ctx context.Context, used bool) *Releasing {
	r := &Releasing{l: l, lost: l.Err(), end: func(error) {}} // if the clock has run out, the lease was lost before
	if r.lost == nil && !l.finish(ErrReleased) {
		r.lost = l.over.why()
	}
	switch {
	case errors.Is(r.lost, ErrReleased):
		return r
	case r.lost == nil:
		l.tellRelease()
	}
	ctx, r.end = l.traceRelease(ctx)
	if r.lost == nil {
		r.removal = l.back(ctx, used)
	}
	return r
}

// made returns r. It panics if r is nil or a zero value.
func (r *Releasing) made() *Releasing {
	if r == nil || r.l == nil {
		panic("queue: Releasing not made by Lease.StartRelease")
	}
	return r
}

// Wait waits for the servers' answer until ctx ends. It returns what [Lease.Release] does.
func (r *Releasing) Wait(ctx context.Context) error {
	r.made()
	misuse.Context(ctx, "queue: Releasing.Wait")
	if r.removal != nil {
		select {
		case <-r.removal.Done():
		case <-ctx.Done():
			return r.conclude(fmt.Errorf("%w: %w", ErrReleasePending, ctx.Err()))
		}
	}
	return r.conclude(r.outcome())
}

// Unlock waits for the servers' answer as [Lease.Unlock] does. It reads no clock if there is nothing to wait for.
func (r *Releasing) Unlock(patience time.Duration) error {
	switch {
	case r.made().removal == nil:
		return r.conclude(nil)
	case patience == 0:
		if r.l.t.q.m.Trace().Release != nil {
			go func() {
				<-r.removal.Done()
				_ = r.conclude(r.outcome())
			}()
		}
		return nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-r.removal.Done():
	case <-r.removal.Cut():
	case <-timer.C:
	}
	select { // both may have happened
	case <-r.removal.Done():
	default:
		go r.tellLater(time.Now())
		return nil
	}
	err := r.conclude(r.outcome())
	if errors.Is(err, ErrReleasePending) {
		r.warnOfEnd()
		return nil
	}
	return err
}

// tellLater tells the Release hook and the log how a release has ended that Unlock has waited for in vain. The session logs
// that a server has refused.
func (r *Releasing) tellLater(began time.Time) {
	<-r.removal.Done()
	err, t := r.outcome(), r.l.t
	switch {
	case err == nil:
		t.q.m.Logger().Info("zookeeper has confirmed the release of a lock, which Unlock did not wait for", "lock", t.q.dir,
			"node", t.node.Path, "session", hexID(t.s), "after", time.Since(began).Round(time.Millisecond))
	case errors.Is(err, ErrReleasePending):
		r.warnOfEnd()
	}
	_ = r.conclude(err)
}

func (r *Releasing) warnOfEnd() {
	t := r.l.t
	t.q.m.Logger().Warn("the session has ended before zookeeper confirmed the release of a lock; its node goes with the session",
		"lock", t.q.dir, "node", t.node.Path, "session", hexID(t.s))
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
