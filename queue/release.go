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

// Releasing is a release under way. Its caller calls one method, once. For makers of locks.
type Releasing struct {
	_ misuse.NoCopy

	l       *Lease
	lost    error // why the lease had ended before, or nil
	removal *session.Removal
	tell    func(error) // may be nil
}

// StartRelease ends the lease, sends the delete or hands the turn over, and waits for nothing. For makers of locks.
func (l *Lease) StartRelease(ctx context.Context, used bool) *Releasing {
	misuse.Context(ctx, "queue: Lease.StartRelease")
	r := &Releasing{l: l, lost: l.Err()}
	if r.lost == nil && !l.finish(ErrReleased) {
		r.lost = l.over.why()
	}
	if errors.Is(r.lost, ErrReleased) {
		return r
	}
	if hook := l.t.q.m.Trace().Release; hook != nil {
		var next context.Context
		next, r.tell = hook(ctx, l.ctx, l.info())
		ctx = cmp.Or(next, ctx)
	}
	switch {
	case r.lost != nil:
	case l.back != nil:
		r.removal = l.back(ctx, used)
	default:
		r.removal = l.t.Leave(ctx)
	}
	return r
}

func (r *Releasing) made() *Releasing {
	if r == nil || r.l == nil {
		panic("queue: Releasing not made by Lease.StartRelease")
	}
	return r
}

// Wait waits until ctx ends, and returns what [Lease.Release] does.
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

// Unlock waits as [Lease.Unlock] does.
func (r *Releasing) Unlock(patience time.Duration) error {
	removal := r.made().removal
	switch {
	case removal == nil:
		return r.conclude(nil)
	case patience == 0:
		if r.tell != nil {
			go func() {
				<-removal.Done()
				_ = r.conclude(nil)
			}()
		}
		return nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-removal.Done():
	case <-removal.Cut():
	case <-timer.C:
	}
	since := time.Now()
	answer := func(late bool) error {
		<-removal.Done()
		err := r.conclude(nil)
		pending := errors.Is(err, ErrReleasePending)
		if !pending && (err != nil || !late) { // the session logs refusals
			return err
		}
		log := r.l.t.q.m.Logger().With("lock", r.l.t.q.dir, "node", r.l.t.node.Path, "session", hexID(r.l.t.s))
		if pending {
			log.Warn("the session has ended before zookeeper confirmed the release of a lock; its node goes with the session")
		} else {
			log.Info("zookeeper has confirmed the release of a lock, which Unlock did not wait for",
				"after", time.Since(since).Round(time.Millisecond))
		}
		return nil // Unlock says nothing of what the log tells
	}
	select { // both may have happened
	case <-removal.Done():
		return answer(false)
	default:
		go func() { _ = answer(true) }()
		return nil
	}
}

// conclude tells the hook, and returns the error for the caller. pending is nil if the removal has ended.
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
	if err == nil || r.lost != nil && !errors.Is(r.lost, ErrReleased) { // a loss names the lock
		return err
	}
	return failed("release", t.q.dir, err)
}
