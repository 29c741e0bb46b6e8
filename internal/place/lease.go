package place

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/label"
	"github.com/turnstile-go/turnstile/internal/leasectx"
	"github.com/turnstile-go/turnstile/internal/maxwait"
)

// Lease is one hold of a lock. Each acquisition returns a new one, and a Lease that has ended never becomes
// held again. The methods may be called by several goroutines at once. Package queue says what they promise.
type Lease struct {
	t   *Turn
	ctx context.Context // the values of the holder's context, for hooks; never ends

	// hold ends with the lease, with its cause. finish ends it, once.
	hold    context.Context
	endHold context.CancelCauseFunc
	since   time.Time // of the grant

	revocation Revocation

	mu      sync.Mutex
	begun   bool        // the Hold hook has returned
	tellEnd func(error) // what it has returned; nil for nothing
	over    bool        // finish was called
	early   bool        // the lease ended before the Hold hook returned
}

// Made returns l. It panics if l is nil or a zero value.
func (l *Lease) Made() *Lease {
	if l == nil || l.t == nil {
		panic("queue: Lease not made by an acquisition")
	}
	return l
}

// newLease returns a lease that no hook has been told of.
func newLease(ctx context.Context, t *Turn) *Lease {
	l := &Lease{t: t, ctx: holderContext(ctx, t.hooks()), since: time.Now()}
	l.hold, l.endHold = context.WithCancelCause(l.ctx)
	return l
}

// Path returns the path of the lease's node.
func (l *Lease) Path() string { return l.t.path }

// Done returns a channel that is closed when the lease is released or lost. Err may know of a loss a moment
// earlier.
func (l *Lease) Done() <-chan struct{} { return l.hold.Done() }

// Err returns nil while the lease is held, and then why it has ended. It looks at the clock at the time of
// the call.
func (l *Lease) Err() error {
	if cause := context.Cause(l.hold); cause != nil {
		return cause
	}
	if err := l.t.s.Err(); err != nil {
		l.lose(err)
	}
	return context.Cause(l.hold)
}

// AfterEnd calls f in a goroutine of its own when the lease has ended.
func (l *Lease) AfterEnd(f func()) { context.AfterFunc(l.hold, f) }

// Context returns a context that ends with parent or with the lease. Its Err and Done look at the clock. What bounds the
// waits of calls with parent does not bound those in the work.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	return leasectx.New(context.WithValue(maxwait.Without(parent), leaseKey{}, l), l.hold, l.Err)
}

// Guard returns an operation that fails unless the lease's node exists.
func (l *Lease) Guard() *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: l.t.path, Version: -1}
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

// info says for hooks what is held.
func (l *Lease) info() hooks.HoldInfo {
	h := l.t.info()
	h.Label = label.From(l.ctx)
	return h
}

// began calls the Hold hook. The hook gets the lease (LeaseFrom), so the lease can end before the
// hook has returned: by a release, or because the session ends. Then began has the end told.
func (l *Lease) began() {
	tellEnd := traceHold(l, l.t.hooks(), l.info())
	l.mu.Lock()
	l.begun, l.tellEnd = true, tellEnd
	early := l.early
	l.mu.Unlock()
	if early {
		l.tell(context.Cause(l.hold))
	}
}

// tell has the hooks called for the end of the lease. Those for a release are called at once. Those for a
// loss are called later, in a goroutine of their own: a look at the lease can be the first to see the loss,
// and neither the look nor what follows a loss waits for a hook. If the Hold hook has not returned yet, began
// tells.
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
			traceLoss(l.ctx, hooks, l.info(), cause)
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

func traceHold(l *Lease, t *hooks.Trace, h hooks.HoldInfo) func(error) {
	if t.Hold == nil {
		return nil
	}
	return t.Hold(context.WithValue(l.ctx, leaseKey{}, l), h)
}

func traceLoss(holder context.Context, t *hooks.Trace, h hooks.HoldInfo, cause error) {
	if t.Loss != nil {
		t.Loss(holder, h, cause)
	}
}

// leaseKey is the context key of a lease.
type leaseKey struct{}

// LeaseFrom returns the lease that ctx belongs to. Such a ctx is returned by Context of a Lease, or derived
// from that.
func LeaseFrom(ctx context.Context) (*Lease, bool) {
	l, ok := ctx.Value(leaseKey{}).(*Lease)
	return l, ok
}

// End says how a lease ends that is released.
type End int
