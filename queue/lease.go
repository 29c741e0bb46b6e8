package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/go-zookeeper/zk"
	"github.com/turnstile-go/turnstile/internal/leasectx"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/plumbing"
)

// Lease is one granted hold: a fresh one for each acquisition, never used again. Its
// methods may be called by any number of goroutines at once. They panic if no acquisition has
// made the Lease.
type Lease struct {
	t   *turn
	ctx context.Context // the holder's values, for the hooks; never ends

	// hold ends with the hold, with its cause. That is set once, by finish.
	hold    context.Context
	endHold context.CancelCauseFunc
	tellEnd func(error) // of the hook

	mu   sync.Mutex
	over bool
}

// made returns l. It panics if l is nil or a zero value.
func (l *Lease) made() *Lease {
	if l == nil || l.t == nil {
		panic("queue: Lease not made by an acquisition")
	}
	return l
}

// newLease returns a hold of which no hook has been told.
func newLease(ctx context.Context, t *turn) *Lease {
	l := &Lease{t: t, ctx: holderContext(ctx, t.hooks()), tellEnd: endNothing}
	l.hold, l.endHold = context.WithCancelCause(l.ctx)
	return l
}

// Path returns the path of the lease's node.
func (l *Lease) Path() string { return l.made().t.info.Node }

// Done returns a channel that is closed when the lease has been released or lost.
// [Lease.Err] may know earlier.
func (l *Lease) Done() <-chan struct{} { return l.made().hold.Done() }

// Err returns nil while the lease is held; [ErrReleased] after its release; and after
// its loss an error that matches [session.ErrLost], or [session.ErrClosed] when the
// manager was closed. It goes by the clock at the time of the call.
func (l *Lease) Err() error {
	l.made()
	if cause := context.Cause(l.hold); cause != nil {
		return cause
	}
	if err := l.t.a.s.Err(); err != nil {
		l.lose(err)
	}
	return context.Cause(l.hold)
}

// Context returns a context that ends with parent, and when the lease is released or lost;
// [context.Cause] then gives what Err of the lease does. The caller must call the returned
// function when done with it, which does not release the lease.
//
// Err and Done of the context go by the clock at the time of the call, as Err of the lease does.
// So the first look after a pause of the process is right, though no timer has run yet. A context
// that was derived from it (by [context.WithTimeout], for example) before the pause cannot look at
// the clock: it ends a moment later. Where that moment matters, ask this one.
//
// [LeaseFrom] gives the lease back, from this context and from those derived from it.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	l.made()
	misuse.Context(parent, "queue: Lease.Context")
	return leasectx.New(context.WithValue(parent, leaseKey{}, l), l.hold, l.Err)
}

// Token returns the fencing token: a number that is higher than that of every lease
// granted before on this path, for whatever is written to under the lock to compare. It
// is the transaction id that made the node (czxid), which grows for as long as the
// ensemble keeps its data; sequence numbers start again with their directory. Leases of
// one turn of a [Local] have one node, and so the same token, and a lease that was taken
// [Lease.Beside] another has the token of that one: tokens never decrease.
//
// It waits for a reply of the server if need be: until ctx ends or the lease does.
func (l *Lease) Token(ctx context.Context) (int64, error) {
	l.made()
	misuse.Context(ctx, "queue: Lease.Token")
	select {
	case <-l.t.known:
		return l.t.czxid, l.t.tokenErr
	default:
	}
	if ctx.Err() == nil && l.hold.Err() == nil {
		l.t.hurry()
	}
	select {
	case <-l.t.known:
		return l.t.czxid, l.t.tokenErr
	case <-ctx.Done():
		return 0, fmt.Errorf("token of %s: %w", l.t.info.Path, ctx.Err())
	case <-l.hold.Done():
		return 0, fmt.Errorf("token of %s: %w", l.t.info.Path, l.Err())
	}
}

// Guard returns an operation to put first into a [session.Session.Multi]: what follows
// it is done only if the lease's node is there, that is, if the server has let nobody
// else in. It costs no request of its own. Leases of one turn of a [Local] have one node, and
// so the same guard: it lets in nobody of another turn.
//
// All holders of an unfair lock have a node of the same path in turn, and of the same
// version, so that a check cannot tell them apart. The guard of one therefore never lets
// anything be done: the Multi fails with zk.ErrBadVersion, or zk.ErrNoNode. Token is for it.
func (l *Lease) Guard() *zk.CheckVersionRequest {
	l.made()
	if l.t.a.claim != nil {
		return &zk.CheckVersionRequest{Path: l.t.info.Node, Version: noVersion}
	}
	return &zk.CheckVersionRequest{Path: l.t.info.Node, Version: -1}
}

// noVersion is one that no node has: they begin at 0, and -1 is for any.
const noVersion = math.MinInt32

// Release gives the lease up: at once and for certain, so that Err and Done say so
// before anything is sent, and others are let in when the server has deleted the node.
// It returns nil when the server has confirmed that. [ErrReleasePending] says that ctx
// ended, or the session, before it did: there is nothing left to do for the caller all
// the same. After a loss it returns the cause ([session.ErrLost]), the second time
// [ErrReleased]; an error of the server (zk.ErrNoAuth) says that it refuses to delete the
// node. Others wait then until it no longer refuses, as the delete is tried again slowly, or
// until the session ends.
func (l *Lease) Release(ctx context.Context) error {
	l.made()
	misuse.Context(ctx, "queue: Lease.Release")
	return l.StartRelease(ctx)()
}

// StartRelease does all of Release but wait for the server, so that several leases can be
// given up one right after another. The returned function, which must be called once, waits
// as ctx allows, and returns what Release does.
func (l *Lease) StartRelease(ctx context.Context) (wait func() error) {
	l.made()
	misuse.Context(ctx, "queue: Lease.StartRelease")
	_ = l.Err() // a clock that has run out comes before the release
	first := l.finish(ErrReleased)
	told := false
	defer func() {
		if first && !told { // a hook has panicked, or ended the goroutine
			l.t.release(l.ctx)
		}
	}()
	if first {
		l.tell(ErrReleased)
	}
	err := l.Err()
	if !first && errors.Is(err, ErrReleased) {
		return func() error { return fmt.Errorf("release %s: %w", l.t.info.Path, err) }
	}
	removing, end := traceRelease(ctx, l.t.hooks(), l.ctx, l.t.info)
	told = true
	var removal plumbing.Removal
	if first {
		removal = l.t.release(removing)
	}
	return func() error {
		if first {
			err = l.await(ctx, removal)
		}
		end(err)
		if err != nil {
			err = fmt.Errorf("release %s: %w", l.t.info.Path, err)
		}
		return err
	}
}

// await waits for a removal; there is none to wait for when the turn goes on.
func (l *Lease) await(ctx context.Context, r plumbing.Removal) error {
	if r == nil {
		return nil
	}
	select {
	case <-r.Done():
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrReleasePending, ctx.Err())
	}
	err := r.Err()
	if err != nil && l.t.a.s.Err() != nil {
		return fmt.Errorf("%w: %w", ErrReleasePending, err)
	}
	return err
}

// abandon gives up a lease that nobody has got, since a hook panicked or ended the goroutine.
func (l *Lease) abandon() {
	if l.finish(ErrReleased) {
		defer l.t.release(l.ctx)
		l.tell(ErrReleased)
	}
}

// finish ends the hold, for the first cause that is given; it reports whether that was
// this one. Then tell has to follow, and what ends the turn has to be done whatever that does.
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

// tell calls the hooks for the end of the hold.
func (l *Lease) tell(cause error) {
	if errors.Is(cause, ErrReleased) {
		l.tellEnd(nil)
		return
	}
	l.tellEnd(cause)
	traceLoss(l.ctx, l.t.hooks(), l.t.info, cause)
}

// lose ends the hold by a loss.
func (l *Lease) lose(cause error) {
	if cause = l.t.lossOf(cause); l.finish(cause) {
		l.tell(cause)
	}
}
