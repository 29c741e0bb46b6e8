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

// Lease is one hold of a lock. Each acquisition returns a new one, and a Lease that has ended never becomes held again.
// The methods may be called by several goroutines at once.
type Lease struct {
	_ misuse.NoCopy

	t     *Turn
	ctx   context.Context // the values of the holder's context, for hooks; never ends
	since time.Time       // of the grant
	back  func(ctx context.Context, used bool) *session.Removal
	over  ending

	begun ending      // comes when the Hold hook has returned
	tell  func(error) // what it has returned; may be nil
}

// Lease begins a hold of the turn. ctx is that of the caller that gets the lease. Its release calls back once, which
// hands the turn over or keeps it and returns nil, or leaves it and returns the removal. used is false if no caller has
// got the lease: then the turn is not kept. If back is nil, a release leaves the turn.
func (t *Turn) Lease(ctx context.Context, back func(ctx context.Context, used bool) *session.Removal) *Lease {
	t.made()
	misuse.Context(ctx, "queue: Turn.Lease")
	l := &Lease{t: t, ctx: t.q.valuesFor(ctx), since: time.Now(), back: back}
	t.mu.Lock()
	t.leases = append(t.leases, l)
	t.mu.Unlock()
	if hook := t.q.m.Trace().Hold; hook != nil { // it gets the lease, which can end before it returns
		l.tell = hook(context.WithValue(l.ctx, leaseKey{}, l), l.info())
	}
	l.begun.end(errTold)
	if cause := t.over.why(); cause != nil {
		t.lose(cause) // again: the first call may not have found this lease
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

// Turn returns the turn that the lease has. For makers of locks.
func (l *Lease) Turn() *Turn { return l.made().t }

// Done returns a channel that is closed when the lease is released or lost. [Lease.Err] may know of a loss earlier.
func (l *Lease) Done() <-chan struct{} { return l.made().over.wait() }

// AfterEnd calls f in a goroutine of its own when the lease has ended. stop cancels that. For makers of locks.
func (l *Lease) AfterEnd(f func()) (stop func()) { return l.made().over.after(func() { go f() }) }

// Err returns nil while the lease is held, and [ErrReleased] after its release. After its loss it returns an error that
// matches [session.ErrLost], or [session.ErrClosed] if the manager was closed. It looks at the clock when it is called.
func (l *Lease) Err() error {
	if l.made().over.why() == nil {
		if cause := cmp.Or(l.t.over.why(), l.t.s.Err()); cause != nil {
			l.t.lose(cause) // the clock has run out, or the goroutine that has ended the turn is on its way here
		}
	}
	return l.over.why()
}

// Revoked returns a channel that is closed when another client asks the holder to give the lock up: with zklock.Revoke,
// with Curator's Revoker, or with the command turnstile break. The lease stays held: the holder releases it when that
// suits the work, or not at all. The context of a Do ends: see [ErrRevoked].
//
// If the lock was free, the holder hears of a request from 5 ms after the grant on, or once it has called
// [Lease.Token]. A contender that has waited hears at once, also of a request that came while it waited.
func (l *Lease) Revoked() <-chan struct{} { return l.made().t.revoked.wait() }

// IsRevoked reports whether Revoked is closed.
func (l *Lease) IsRevoked() bool { return l.made().t.revoked.why() != nil }

// AfterRevoke calls f when Revoked is closed, or at once if it is closed. f must not block. stop cancels that. For
// makers of locks.
func (l *Lease) AfterRevoke(f func()) (stop func()) { return l.made().t.revoked.after(f) }

// Token returns the fencing token: a number that is higher than that of each earlier holder. Stores that compare tokens
// refuse former holders: see package fence. It is the id of the transaction that created the node (czxid). It grows for
// as long as the ensemble keeps its data, while sequence numbers start again. Leases of one turn share a token, and so
// do a writer and the reader that it becomes.
//
// Token may have to wait for the server, until ctx or the lease ends. It returns what the server refused.
func (l *Lease) Token(ctx context.Context) (int64, error) {
	l.made()
	misuse.Context(ctx, "queue: Lease.Token")
	if l.t.known.why() != nil { // without a look at the clock
		return l.t.token, l.t.tokenErr
	}
	ctx, end := BeginWait(ctx)
	token, err := l.t.awaitToken(ctx, &l.over)
	if err != nil && (errors.Is(err, ctx.Err()) || l.over.why() != nil) {
		return 0, end(failed("token of", l.t.q.dir, err))
	}
	return token, end(err)
}

// Guard returns an operation to put first into a [session.Session.Multi]: that fails with zk.ErrNoNode, and changes
// nothing, unless the lease's node exists.
func (l *Lease) Guard() *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: l.made().t.node.Path, Version: -1}
}

// Context returns a context that ends with parent, or when the lease is released or lost: then the cause is what
// [Lease.Err] returns. Its Err and Done look at the clock: see [WithEnd]. [WithMaxWait] of parent does not hold in it.
// [LeaseFrom] returns its lease. The caller calls the function when the work is done.
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

// finish ends the lease, and tells the hooks once the Hold hook has returned. It reports whether this was the first
// call; others do nothing. A loss is told in a goroutine of the manager: a look at the lease waits for no hook.
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

// Release gives the lease up. The lease ends before anything is sent: Err and Done say so at once.
//
// Release returns nil when the server has confirmed the delete, or when the lock was handed over or its place is kept.
// It returns [ErrReleasePending] if ctx or the session ended first: the delete is certain all the same. After a loss it
// returns the cause, and after a release [ErrReleased]. If the server refuses the delete, Release returns its error,
// such as zk.ErrNoAuth, and the session goes on to try.
func (l *Lease) Release(ctx context.Context) error {
	l.made()
	misuse.Context(ctx, "queue: Lease.Release")
	return l.StartRelease(ctx, true).Wait(ctx)
}

// Unlock is Release for locks whose Unlock has no context. It waits for the servers' answer, but for no connection, and
// for patience at most. Then it returns nil, and the log and the Release hook are told how it went. For makers of
// locks.
func (l *Lease) Unlock(patience time.Duration) error {
	return l.StartRelease(context.Background(), true).Unlock(patience)
}

// GiveUp is Release for a lease that no caller has got: the place is not kept. For makers of locks.
func (l *Lease) GiveUp(ctx context.Context) error {
	l.made()
	misuse.Context(ctx, "queue: Lease.GiveUp")
	return l.StartRelease(ctx, false).Wait(ctx)
}
