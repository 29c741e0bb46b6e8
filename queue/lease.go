package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/go-zookeeper/zk"
	"github.com/turnstile-go/turnstile/session"
)

// Lease is one granted hold: a fresh one for each acquisition, never used again. Its
// methods may be called by any number of goroutines at once.
type Lease struct {
	a    *attempt // nothing in it changes any more
	info session.HoldInfo
	ctx  context.Context // the holder's values, for the hooks; never ends

	// hold ends with the hold, with its cause. That is set once, by finish.
	hold    context.Context
	endHold context.CancelCauseFunc
	tellEnd func(error) // of the hook

	revoked bool // its Revoked was called; guard's alone

	known    chan struct{} // closed when czxid or unknown is set
	czxid    int64
	tokenErr error

	mu   sync.Mutex
	over bool
}

// newLease begins a hold.
func newLease(ctx context.Context, a *attempt) *Lease {
	hooks := a.q.m.TraceHooks()
	l := &Lease{
		a:     a,
		info:  session.HoldInfo{Kind: a.r.Kind.Name, Path: a.q.dir, Node: a.nodePath()},
		ctx:   holderContext(ctx, hooks),
		known: make(chan struct{}),
	}
	l.hold, l.endHold = context.WithCancelCause(l.ctx)
	l.tellEnd = traceHold(l.ctx, hooks, l.info)
	go l.guard()
	return l
}

// Path returns the path of the lease's node.
func (l *Lease) Path() string { return l.info.Node }

// Done returns a channel that is closed when the lease has been released or lost.
// [Lease.Err] may know earlier.
func (l *Lease) Done() <-chan struct{} { return l.hold.Done() }

// Err returns nil while the lease is held; [ErrReleased] after its release; and after
// its loss an error that matches [session.ErrLost], or [session.ErrClosed] when the
// manager was closed. It goes by the clock at the time of the call.
func (l *Lease) Err() error {
	if cause := context.Cause(l.hold); cause != nil {
		return cause
	}
	if err := l.a.s.Err(); err != nil {
		l.lose(err)
	}
	return context.Cause(l.hold)
}

// Context returns a context that ends with parent, and when the lease is released or
// lost; [context.Cause] then gives what Err does. The caller must call the returned
// function when done with it, which does not release the lease.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(l.hold, func() { cancel(context.Cause(l.hold)) })
	if err := l.Err(); err != nil {
		cancel(err)
	}
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

// Token returns the fencing token: a number that is higher than that of every lease
// granted before on this path, for whatever is written to under the lock to compare. It
// is the transaction id that made the node (czxid), which grows for as long as the
// ensemble keeps its data; sequence numbers start again with their directory.
//
// It waits for a reply of the server if need be: until ctx ends or the lease does.
func (l *Lease) Token(ctx context.Context) (int64, error) {
	select {
	case <-l.known:
		return l.czxid, l.tokenErr
	default:
	}
	select {
	case <-l.known:
		return l.czxid, l.tokenErr
	case <-ctx.Done():
		return 0, fmt.Errorf("token of %s: %w", l.info.Path, ctx.Err())
	case <-l.hold.Done():
		return 0, fmt.Errorf("token of %s: %w", l.info.Path, l.Err())
	}
}

// Guard returns an operation to put first into a [session.Session.Multi]: what follows
// it is done only if the lease's node is there, that is, if the server has let nobody
// else in. It costs no request of its own.
//
// All holders of an unfair lock have a node of the same path in turn, and of the same
// version, so that a check cannot tell them apart. The guard of one therefore never lets
// anything be done: the Multi fails with zk.ErrBadVersion, or zk.ErrNoNode. Token is for it.
func (l *Lease) Guard() *zk.CheckVersionRequest {
	if l.a.claim != nil {
		return &zk.CheckVersionRequest{Path: l.info.Node, Version: noVersion}
	}
	return &zk.CheckVersionRequest{Path: l.info.Node, Version: -1}
}

// noVersion is one that no node has: they begin at 0, and -1 is for any.
const noVersion = math.MinInt32

// Release gives the lease up: at once and for certain, so that Err and Done say so
// before anything is sent, and others are let in when the server has deleted the node.
// It returns nil when the server has confirmed that. [ErrReleasePending] says that ctx
// ended, or the session, before it did: there is nothing left to do for the caller all
// the same. After a loss it returns the cause ([session.ErrLost]), the second time
// [ErrReleased]; an error of the server (zk.ErrNoAuth) says that the node stays until
// the session ends.
func (l *Lease) Release(ctx context.Context) error { return l.StartRelease(ctx)() }

// StartRelease does all of Release but wait for the server, so that several leases can be
// given up one right after another. The returned function, which must be called once, waits
// as ctx allows, and returns what Release does.
func (l *Lease) StartRelease(ctx context.Context) (wait func() error) {
	_ = l.Err() // a clock that has run out comes before the release
	first := l.finish(ErrReleased)
	err := l.Err()
	if !first && errors.Is(err, ErrReleased) {
		return func() error { return fmt.Errorf("release %s: %w", l.info.Path, err) }
	}
	removing, end := traceRelease(ctx, l.a.q.m.TraceHooks(), l.ctx, l.info)
	var removal *session.Removal
	if first {
		removal = l.a.remove(removing)
	}
	return func() error {
		if first {
			err = l.await(ctx, removal)
		}
		end(err)
		if err != nil {
			err = fmt.Errorf("release %s: %w", l.info.Path, err)
		}
		return err
	}
}

func (l *Lease) await(ctx context.Context, r *session.Removal) error {
	select {
	case <-r.Done():
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrReleasePending, ctx.Err())
	}
	err := r.Err()
	if err != nil && l.a.s.Err() != nil {
		return fmt.Errorf("%w: %w", ErrReleasePending, err)
	}
	return err
}

// finish ends the hold, for the first cause that is given; it reports whether that was
// this one.
func (l *Lease) finish(cause error) bool {
	l.mu.Lock()
	first := !l.over
	if first {
		l.over = true
		l.endHold(cause)
	}
	l.mu.Unlock()
	if !first {
		return false
	}
	if errors.Is(cause, ErrReleased) {
		l.tellEnd(nil)
		return true
	}
	l.tellEnd(cause)
	traceLoss(l.ctx, l.a.q.m.TraceHooks(), l.info, cause)
	return true
}

// lose ends the hold by a loss; it reports whether it was held until now.
func (l *Lease) lose(cause error) bool {
	return l.finish(fmt.Errorf("lock %s: %w", l.info.Path, cause))
}

// loseNode ends the hold since somebody deleted the node.
func (l *Lease) loseNode() {
	if !l.lose(fmt.Errorf("%w: %w", session.ErrLost, errDeleted)) {
		return // it was released, by a delete of ours
	}
	// There is nothing to delete any more, but the session counts the node as one of
	// its own (WithMaxNodes) until a delete of ours has found it gone.
	l.a.remove(l.ctx)
}

// guard watches over the lease: over its node, which somebody may delete, and over its
// session. It ends with the hold.
func (l *Lease) guard() {
	wake := make(chan struct{}, 1)
	own := l.a.own
	l.learn(own, l.a.czxid, nil)
	if own != nil {
		data, _, _ := own.Result()
		l.heed(data)
	}
	for l.hold.Err() == nil {
		if own == nil || own.Event() != session.WatchPending {
			own = l.watchOwn()
		}
		l.waitGuard(own, wake)
	}
}

// waitGuard returns when there is something to look at.
func (l *Lease) waitGuard(own *session.Watch, wake chan struct{}) {
	if own != nil {
		defer own.Notify(wake)()
	}
	select {
	case <-wake:
		if own.Event() == session.WatchDeleted {
			l.loseNode()
		}
	case <-l.hold.Done():
	case <-l.a.s.Done():
		l.lose(l.a.s.Err())
	}
}

// watchOwn sets the watch on our node, for the first time or again. It returns nil if
// that cannot be done, since the lease has ended or the server refuses.
func (l *Lease) watchOwn() *session.Watch {
	for {
		data, stat, w, err := l.a.s.Watch(l.hold, l.info.Node)
		switch {
		case err == nil && stat.EphemeralOwner != l.a.s.ID():
			l.loseNode() // another's now stands where ours did: of an unfair lock
			return nil
		case err == nil:
			l.learn(w, stat.Czxid, nil)
			l.heed(data)
			return w
		case l.hold.Err() != nil:
			return nil
		case errors.Is(err, zk.ErrNoNode):
			l.loseNode()
			return nil
		case l.a.s.Err() != nil:
			l.lose(l.a.s.Err())
			return nil
		case !session.Uncertain(err):
			l.learn(nil, 0, err)
			return nil
		}
		// A lost reply, and WithRetry says stop. That ends requests, not leases.
	}
}

// learn notes the token, or why there is none; the first time only. It is called by
// guard alone.
func (l *Lease) learn(own *session.Watch, czxid int64, err error) {
	if own == nil && err == nil {
		return
	}
	select {
	case <-l.known:
	default:
		l.czxid, l.tokenErr = czxid, err
		close(l.known)
	}
}

// RevokeMessage is the data that asks a holder to give up its lease: Curator's.
const RevokeMessage = "__REVOKE__"

// heed calls Revoked if the data of our node says so and it has not been called before. It
// is called by guard alone.
func (l *Lease) heed(data []byte) {
	if l.a.r.Revoked != nil && !l.revoked && string(data) == RevokeMessage && l.hold.Err() == nil {
		l.revoked = true
		go l.a.r.Revoked(l)
	}
}
