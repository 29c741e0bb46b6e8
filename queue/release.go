package queue

import (
	"cmp"
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
	tell    func(error)      // the end of the Release hook; may be nil
}

// StartRelease ends the lease and sends the delete, or hands the turn over, and waits for nothing. So several leases can
// be released right after each other. ctx is for hooks. used is false for a lease that no caller has got: its place is not
// kept.
func (l *Lease) StartRelease(ctx context.Context, used bool) *Releasing {
	misuse.Context(ctx, "queue: Lease.StartRelease")
	r := &Releasing{l: l, lost: l.Err()} // if the clock has run out, the lease was lost before
	if r.lost == nil && !l.finish(ErrReleased) {
		r.lost = l.over.why()
	}
	if errors.Is(r.lost, ErrReleased) {
		return r
	}
	if hook := l.t.q.m.Trace().Release; hook != nil {
		ctx, r.tell = hook(ctx, l.ctx, l.info())
	}
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
	return r.conclude(nil)
}

// Unlock waits for the servers' answer as [Lease.Unlock] does. It reads no clock if there is nothing to wait for.
func (r *Releasing) Unlock(patience time.Duration) error {
	switch {
	case r.made().removal == nil:
		return r.conclude(nil)
	case patience == 0:
		if r.tell != nil {
			go func() {
				<-r.removal.Done()
				_ = r.conclude(nil)
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
		return r.answered(time.Time{})
	default:
		go func(since time.Time) {
			<-r.removal.Done()
			_ = r.answered(since)
		}(time.Now())
		return nil
	}
}

// answered concludes the release of an Unlock. The log is told of what Unlock does not return: a confirmation that came after
// it had returned, or none. The session logs that a server has refused. since is when Unlock has returned; zero: it has not.
func (r *Releasing) answered(since time.Time) error {
	err, t := r.conclude(nil), r.l.t
	cut := errors.Is(err, ErrReleasePending)
	if !cut && (err != nil || since.IsZero()) {
		return err
	}
	log := t.q.m.Logger().With("lock", t.q.dir, "node", t.node.Path, "session", hexID(t.s))
	if cut {
		log.Warn("the session has ended before zookeeper confirmed the release of a lock; its node goes with the session")
	} else {
		log.Info("zookeeper has confirmed the release of a lock, which Unlock did not wait for",
			"after", time.Since(since).Round(time.Millisecond))
	}
	return nil
}

// conclude tells the Release hook how the release has ended, and returns the error for the caller. pending is the error if
// nobody waits for the removal any more; otherwise it has ended.
func (r *Releasing) conclude(pending error) error {
	t, err := r.l.t, cmp.Or(r.lost, pending)
	if err == nil && r.removal != nil {
		if err = r.removal.Err(); err != nil && t.s.Err() != nil {
			err = fmt.Errorf("%w: %w", ErrReleasePending, err)
		}
	}
	if r.tell != nil {
		r.tell(err)
	}
	if err == nil || r.lost != nil && !errors.Is(r.lost, ErrReleased) { // the error of a loss names the lock
		return err
	}
	return failed("release", t.q.dir, err)
}
