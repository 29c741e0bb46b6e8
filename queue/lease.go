package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/session"
)

// Lease is one hold of a lock. Once ended, it is never held again.
type Lease struct {
	_ misuse.NoCopy

	t     *Turn
	ctx   context.Context // for hooks
	since time.Time
	back  func(ctx context.Context, used bool) *session.Removal
	over  ending

	begun ending      // the Hold hook has returned
	tell  func(error) // may be nil
}

// Lease begins a hold of the turn. Its release calls back once, which hands the turn over or keeps it and returns
// nil, or leaves it and returns the removal. used is false if no caller has got the lease. If back is nil, the
// release leaves the turn. back is not called for a lease that was lost: [Turn.AfterEnd] tells of that.
func (t *Turn) Lease(ctx context.Context, back func(ctx context.Context, used bool) *session.Removal) *Lease {
	t.made()
	misuse.Context(ctx, "queue: Turn.Lease")
	l := &Lease{t: t, ctx: t.q.valuesFor(ctx), since: time.Now(), back: back}
	t.mu.Lock()
	t.leases = append(t.leases, l)
	t.mu.Unlock()
	if hook := t.q.m.Trace().Hold; hook != nil { // the lease can end during the call
		l.tell = hook(context.WithValue(l.ctx, leaseKey{}, l), l.info())
	}
	l.begun.end(errTold)
	if cause := t.over.why(); cause != nil {
		t.lose(cause) // an earlier call may have missed this lease
	}
	return l
}

func (l *Lease) made() *Lease {
	if l == nil || l.t == nil {
		panic("queue: Lease not made by an acquisition")
	}
	return l
}

// Path returns the path of the lease's node.
func (l *Lease) Path() string { return l.made().t.node.Path }

// Turn returns the turn. For makers of locks.
func (l *Lease) Turn() *Turn { return l.made().t }

// Done returns a channel that is closed when the lease is released or lost. Err may know of a loss earlier.
func (l *Lease) Done() <-chan struct{} { return l.made().over.wait() }

// AfterEnd calls f on a new goroutine after the end. For makers of locks.
func (l *Lease) AfterEnd(f func()) (stop func()) { return l.made().over.after(func() { go f() }) }

// Err returns nil while the lease is held, and then [ErrReleased], or the reason of its loss: an error that matches
// [session.ErrLost], or [session.ErrClosed] if the manager was closed. It looks at the clock.
func (l *Lease) Err() error {
	if l.made().over.why() == nil {
		if cause := cmp.Or(l.t.over.why(), l.t.s.Err()); cause != nil {
			l.t.lose(cause) // the clock has run out, or the end of the turn is on its way
		}
	}
	return l.over.why()
}

// Revoked returns a channel that is closed when another client asks for the lock, with zklock.Revoke, Curator's
// Revoker or the command turnstile break. The lease stays held: the holder releases it when that suits the work, or
// not at all. If the lock was free, requests are heard from 5 ms after the grant on, or once [Lease.Token] was
// called.
func (l *Lease) Revoked() <-chan struct{} { return l.made().t.revoked.wait() }

// IsRevoked reports whether Revoked is closed.
func (l *Lease) IsRevoked() bool { return l.made().t.revoked.why() != nil }

// AfterRevoke calls f when Revoked is closed, at once if it is. f must not block. For makers of locks.
func (l *Lease) AfterRevoke(f func()) (stop func()) { return l.made().t.revoked.after(f) }

// Token returns the fencing token, by which stores can refuse former holders: see package fence. It is the czxid of
// the node, which is higher than that of each earlier holder. Leases of one turn share a token, and so do a writer
// and the reader that it becomes. Token waits for the server until ctx or the lease ends, and returns what that
// refuses.
func (l *Lease) Token(ctx context.Context) (int64, error) {
	l.made()
	misuse.Context(ctx, "queue: Lease.Token")
	if l.t.known.why() != nil {
		return l.t.token, l.t.tokenErr
	}
	ctx, end := BeginWait(ctx)
	token, err := l.t.awaitToken(ctx, &l.over)
	if err != nil && (errors.Is(err, ctx.Err()) || l.over.why() != nil) {
		return 0, end(failed("token of", l.t.q.dir, err))
	}
	return token, end(err)
}

// Guard returns an operation for a [session.Session.Multi], which then fails with zk.ErrNoNode unless the lease's
// node exists.
func (l *Lease) Guard() *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: l.made().t.node.Path, Version: -1}
}

// Context returns a context that ends with parent, or with the lease: then its cause is what [Lease.Err] returns. Its
// Err and Done look at the clock. [WithMaxWait] of parent does not hold in it. [LeaseFrom] returns its lease.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	l.made()
	misuse.Context(parent, "queue: Lease.Context")
	return WithEnd(context.WithValue(parent, leaseKey{}, l), l.Err, l.over.after)
}

func (l *Lease) info() session.HoldInfo {
	t := l.t
	return session.HoldInfo{
		Kind: t.kind.Name, Name: t.lock, Chroot: t.q.m.Chroot(), Path: t.q.dir, Node: t.node.Path, Label: labelOf(l.ctx),
	}
}

// finish reports whether this was the first call. A loss is told in a goroutine of the manager: a look at the lease
// waits for no hook.
func (l *Lease) finish(cause error) bool {
	if !l.over.end(cause) {
		return false
	}
	l.t.mu.Lock()
	l.t.leases = slices.DeleteFunc(l.t.leases, func(one *Lease) bool { return one == l })
	l.t.mu.Unlock()
	trace := l.t.q.m.Trace()
	if trace.Hold == nil && trace.Loss == nil {
		return true
	}
	l.begun.after(func() {
		switch released := errors.Is(cause, ErrReleased); {
		case released && l.tell != nil:
			l.tell(nil)
		case !released && (l.tell != nil || trace.Loss != nil):
			l.t.q.m.TellLoss(func() {
				if trace.Loss != nil {
					trace.Loss(l.ctx, l.info(), cause)
				}
				if l.tell != nil {
					l.tell(cause)
				}
			})
		}
	})
	return true
}

// Release gives the lease up, which Err and Done say before anything is sent. It returns nil when the server has
// confirmed the delete, or when the lock was handed over or its place is kept, and [ErrReleasePending] if ctx or the
// session ended first. After a loss it returns the cause, and after a release [ErrReleased]. If the server refuses,
// as with zk.ErrNoAuth, it returns that, and the session goes on to try.
func (l *Lease) Release(ctx context.Context) error {
	l.made()
	misuse.Context(ctx, "queue: Lease.Release")
	return l.StartRelease(ctx, true).Wait(ctx)
}

// Unlock is Release that waits for patience at most, and for no connection. Then it returns nil, and only the Release
// hook, and of a refusal the log, are told how it went. For makers of locks.
func (l *Lease) Unlock(patience time.Duration) error {
	return l.StartRelease(context.Background(), true).Unlock(patience)
}

// GiveUp is Release for a lease that no caller has got. For makers of locks.
func (l *Lease) GiveUp(ctx context.Context) error {
	l.made()
	misuse.Context(ctx, "queue: Lease.GiveUp")
	return l.StartRelease(ctx, false).Wait(ctx)
}
