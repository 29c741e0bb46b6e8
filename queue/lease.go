package queue

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/place"
)

// Lease is one hold of a lock. Each acquisition returns a new one, and a Lease that has ended never
// becomes held again. The methods may be called by several goroutines at once. They panic if the
// Lease was not returned by an acquisition.
type Lease place.Lease

// place returns what l is. It panics if l is nil or a zero value.
func (l *Lease) place() *place.Lease { return (*place.Lease)(l).Made() }

// Path returns the path of the lease's node.
func (l *Lease) Path() string { return l.place().Path() }

// Done returns a channel that is closed when the lease is released or lost. [Lease.Err] may know
// of a loss a moment earlier.
func (l *Lease) Done() <-chan struct{} { return l.place().Done() }

// Err returns nil while the lease is held, and [ErrReleased] after its release. After its loss it
// returns an error that matches [session.ErrLost], or [session.ErrClosed] if the manager was
// closed. Err looks at the clock at the time of the call.
func (l *Lease) Err() error { return l.place().Err() }

// Revoked returns a channel that is closed when another client asks the holder to give the lock up: with Revoke of
// package zklock, with Curator's Revoker, or with the command turnstile break. The lease stays held. The holder
// releases it when that suits the work, or not at all. Where several leases share a node, because goroutines hand a
// lock on or readers hold it together, each lease that is held then hears of it.
//
// If the lock was free, the holder hears of a request from 5 ms after the grant on, or once it has called
// [Lease.Token]. A contender that has waited hears of a request at the grant, also of one that came while it waited.
// After a request the place is neither kept nor handed over to another goroutine.
func (l *Lease) Revoked() <-chan struct{} { return l.place().Revocation().Wait() }

// Context returns a context that ends with parent, or when the lease is released or lost. In the
// second case its [context.Cause] is what [Lease.Err] returns. The caller must call the returned
// function when it no longer needs the context. That does not release the lease.
//
// Err and Done of the context look at the clock at the time of the call, as [Lease.Err] does. So
// they are right immediately after the process was paused, before any timer has run. A context
// that was derived from it before the pause, for example by [context.WithTimeout], cannot look at
// the clock, and ends a moment later. If that moment matters, ask the context that Context
// returned.
//
// [LeaseFrom] returns the lease of this context and of contexts derived from it. A bound of parent's waits
// ([WithMaxWait]) does not hold in them.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	made := l.place()
	misuse.Context(parent, "queue: Lease.Context")
	return made.Context(parent)
}

// Token returns the fencing token: a number that is higher than the token of every lease that was
// granted before on this path. A store that is written to under the lock can compare tokens: it
// refuses a lower one than it has seen, and accepts an equal one. It has to compare before the holder
// reads, in the transaction that writes. Package [github.com/turnstile-go/turnstile/fence] does that
// in SQL databases.
//
// The token is the id of the transaction that created the node (czxid). It grows for as long as
// the ensemble keeps its data, while sequence numbers start again with a new directory. Leases
// that share a place have the same token: the leases of one turn of a [Local], and the lease of a
// reader that was a writer before. Tokens never decrease, except from one reader to another with no
// writer between them: readers of one process can take their place again ([WithLazyRelease]) after a
// reader of another process has got a later place.
//
// If the token is not known yet, Token waits for the server. It returns when ctx ends, with an
// error that matches ctx.Err(), or when the lease ends, with the error of [Lease.Err]. If the
// server does not let this client read the node, it returns the server's error.
func (l *Lease) Token(ctx context.Context) (int64, error) {
	made := l.place()
	misuse.Context(ctx, "queue: Lease.Token")
	return made.Token(ctx)
}

// Guard returns an operation to put first into a [session.Session.Multi]. The operations that
// follow take effect only if the lease's node still exists, and so only if no other contender was
// let in. Guard sends no request. The leases of one turn of a [Local] have the same node, and so
// the same guard, which does not tell them apart.
func (l *Lease) Guard() *zk.CheckVersionRequest { return l.place().Guard() }

// Beside takes another lease of the same queue next to l: at once, in the same session, with the
// same sequence number. Then both are held, and each is released on its own. The new lease has the
// Token of l, whose place it shares.
//
// It is for kinds whose [Policy] says, by Replaces, that one node may leave another in its place: a writer
// that becomes a reader, with no other contender in between. Package rwlock does that. If l is of a [Local],
// its turn ends: the lock is not handed over after it.
//
// Beside fails with ctx's error. If l has ended, or ends in the meantime, it fails with the cause
// ([session.ErrLost], [ErrReleased]). It fails with [session.ErrInvalid] if the policy of l does not
// say by Replaces that its node may leave another in its place, or if the two kinds have different
// prefixes. Otherwise it fails as [Queue.Acquire] does.
func (l *Lease) Beside(ctx context.Context, r Request) (*Lease, error) {
	made := l.place()
	misuse.Context(ctx, "queue: Lease.Beside")
	beside, err := made.Beside(ctx, r.place())
	return (*Lease)(beside), err
}

// Release gives the lease up. The lease ends before anything is sent: Err and Done say so at
// once. The next contender goes when the server has deleted the node. A lease that was lost need not be
// released.
//
// Release returns nil when the server has confirmed the delete, or when a [Local] has handed the lock over or
// keeps its place. It returns [ErrReleasePending] if ctx or the session ended first: the delete is still
// certain, and the caller has nothing more to do. After a loss it returns the cause ([session.ErrLost],
// [session.ErrClosed]), and after a release [ErrReleased]. An error of the server, such as zk.ErrNoAuth, says
// that it refuses to delete the node. The delete is then repeated slowly, and other contenders wait until the
// server allows it or the session ends.
func (l *Lease) Release(ctx context.Context) error {
	made := l.place()
	misuse.Context(ctx, "queue: Lease.Release")
	return made.Release(ctx, place.Done)
}

// LeaseFrom returns the lease that ctx belongs to, for its token and its guard. Such a ctx is
// passed to the function of a Do, returned by [Lease.Context], or derived from one of these. If
// leases are nested, LeaseFrom returns the innermost. If there is none, it returns false.
//
// In a Do of several locks (Multi of package zklock) use MultiLeaseFrom of that package. There,
// LeaseFrom returns only a lease from further out.
//
// The function of a Do must not release the lease: Do releases it.
func LeaseFrom(ctx context.Context) (*Lease, bool) {
	misuse.Context(ctx, "queue: LeaseFrom")
	l, ok := place.LeaseFrom(ctx)
	return (*Lease)(l), ok
}
