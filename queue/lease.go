package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/turnstile-go/turnstile/internal/leasectx"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Lease is one hold of a lock. Each acquisition returns a new one, and a Lease that has ended never
// becomes held again. The methods may be called by several goroutines at once. They panic if the
// Lease was not returned by an acquisition.
type Lease struct {
	t   *turn
	ctx context.Context // the values of the holder's context, for hooks; never ends

	// hold ends with the lease, with its cause. finish ends it, once.
	hold    context.Context
	endHold context.CancelCauseFunc
	since   time.Time // of the grant

	mu      sync.Mutex
	begun   bool        // the Hold hook has returned
	tellEnd func(error) // what it has returned; nil for nothing
	over    bool        // finish was called
	early   bool        // the lease ended before the Hold hook returned
}

// made returns l. It panics if l is nil or a zero value.
func (l *Lease) made() *Lease {
	if l == nil || l.t == nil {
		panic("queue: Lease not made by an acquisition")
	}
	return l
}

// newLease returns a lease that no hook has been told of.
func newLease(ctx context.Context, t *turn) *Lease {
	l := &Lease{t: t, ctx: holderContext(ctx, t.hooks()), since: time.Now()}
	l.hold, l.endHold = context.WithCancelCause(l.ctx)
	return l
}

// Path returns the path of the lease's node.
func (l *Lease) Path() string { return l.made().t.path }

// Done returns a channel that is closed when the lease is released or lost. [Lease.Err] may know
// of a loss a moment earlier.
func (l *Lease) Done() <-chan struct{} { return l.made().hold.Done() }

// Err returns nil while the lease is held, and [ErrReleased] after its release. After its loss it
// returns an error that matches [session.ErrLost], or [session.ErrClosed] if the manager was
// closed. Err looks at the clock at the time of the call.
func (l *Lease) Err() error {
	l.made()
	if cause := context.Cause(l.hold); cause != nil {
		return cause
	}
	if err := l.t.s.Err(); err != nil {
		l.lose(err)
	}
	return context.Cause(l.hold)
}

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
// [LeaseFrom] returns the lease of this context and of contexts derived from it.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	l.made()
	misuse.Context(parent, "queue: Lease.Context")
	return leasectx.New(context.WithValue(parent, leaseKey{}, l), l.hold, l.Err)
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
	l.made()
	misuse.Context(ctx, "queue: Lease.Token")
	if l.t.known.Has() {
		return l.t.token, l.t.tokenErr
	}
	if ctx.Err() == nil && l.hold.Err() == nil {
		l.t.hurry()
	}
	select {
	case <-l.t.known.Wait():
		return l.t.token, l.t.tokenErr
	case <-ctx.Done():
		return 0, fmt.Errorf("token of %s: %w", l.t.q.dir, ctx.Err())
	case <-l.hold.Done():
		return 0, fmt.Errorf("token of %s: %w", l.t.q.dir, l.Err())
	}
}

// Guard returns an operation to put first into a [session.Session.Multi]. The operations that
// follow take effect only if the lease's node still exists, and so only if no other contender was
// let in. Guard sends no request. The leases of one turn of a [Local] have the same node, and so
// the same guard, which does not tell them apart.
//
// The guard of an unfair lock always fails: the Multi returns zk.ErrBadVersion or zk.ErrNoNode. The
// reason is that all holders of the lock have nodes with the same path and version, so a check
// cannot tell one holder from the next. Use [Lease.Token] instead.
func (l *Lease) Guard() *zk.CheckVersionRequest {
	l.made()
	if l.t.claim != nil {
		return &zk.CheckVersionRequest{Path: l.t.path, Version: noVersion}
	}
	return &zk.CheckVersionRequest{Path: l.t.path, Version: -1}
}

// noVersion is a version that no node has. Versions begin at 0, and -1 in a check means any.
const noVersion = math.MinInt32

// Release gives the lease up. The lease ends before anything is sent: Err and Done say so at
// once. The next contender goes when the server has deleted the node. A lease that was lost need not be
// released.
//
// Release returns nil when the server has confirmed the delete, or when a [Local] has handed the
// lock over or keeps its place. It returns [ErrReleasePending] if ctx or the session ended first: the delete is
// still certain, and the caller has nothing more to do. After a loss it returns the cause
// ([session.ErrLost], [session.ErrClosed]), and after a release [ErrReleased]. An error of the
// server, such as zk.ErrNoAuth, says that it refuses to delete the node. The delete is then
// repeated slowly, and other contenders wait until the server allows it or the session ends.
func (l *Lease) Release(ctx context.Context) error {
	return l.startRelease(ctx, nil).tell()()
}

// finish ends the lease with a cause. It reports whether this was the first call; the other calls
// do nothing. After the first call the caller calls tell, and ends the turn or hands it over.
func (l *Lease) finish(cause error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.over = true
	l.endHold(cause)
	return true
}

// lostWithSession reports whether the lease has ended because its session has.
func (l *Lease) lostWithSession() bool {
	cause := context.Cause(l.hold)
	return cause != nil && !errors.Is(cause, ErrReleased) && !errors.Is(cause, errDeleted)
}

// began calls the Hold hook. The hook gets the lease (LeaseFrom), so the lease can end before the
// hook has returned: by a release, or because the session ends. Then began has the end told.
func (l *Lease) began() {
	tellEnd := traceHold(l, l.t.hooks(), l.t.info())
	l.mu.Lock()
	l.begun, l.tellEnd = true, tellEnd
	early := l.early
	l.mu.Unlock()
	if early {
		l.tell(context.Cause(l.hold))
	}
}

// tell has the hooks called for the end of the lease. Those for a release are called at once. Those for a
// loss are called later, in a goroutine of their own: a look at the lease can be the first to see the loss, and
// neither the look nor what follows a loss waits for a hook. If the Hold hook has not returned yet, began tells.
func (l *Lease) tell(cause error) {
	l.mu.Lock()
	l.early = !l.begun
	early, tellEnd := l.early, l.tellEnd
	l.mu.Unlock()
	switch hooks := l.t.hooks(); {
	case early:
	case errors.Is(cause, ErrReleased):
		traceEnd(tellEnd, nil)
	case tellEnd != nil || hooks.Loss != nil:
		l.t.q.m.CallLate(func() {
			traceLoss(l.ctx, hooks, l.t.info(), cause)
			traceEnd(tellEnd, cause)
		})
	}
}

// lose ends the lease by a loss.
func (l *Lease) lose(cause error) {
	if cause = l.t.lossOf(cause); l.finish(cause) {
		l.tell(cause)
	}
}
