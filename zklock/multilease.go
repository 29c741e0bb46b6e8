package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/leasectx"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// MultiLease is one granted hold of a [MultiLock]: a lease of each of its locks, held as one.
// Its methods may be called by any number of goroutines at once. They panic if no acquisition of
// a MultiLock has made the MultiLease.
type MultiLease struct {
	place []int // of each lease among the locks given to Multi

	mu     sync.Mutex
	leases []*queue.Lease // in the order in which they were taken; grows until all are there

	// hold ends with the first of the leases, with its cause, or with Release.
	hold    context.Context
	endHold context.CancelCauseFunc
}

// made returns l. It panics if l is nil or a zero value.
func (l *MultiLease) made() *MultiLease {
	if l == nil || l.hold == nil {
		panic("zklock: MultiLease not made by MultiLock.Acquire")
	}
	return l
}

func newMultiLease(place []int) *MultiLease {
	l := &MultiLease{place: place}
	l.hold, l.endHold = context.WithCancelCause(context.Background())
	return l
}

// add makes one more lease a part. Nobody else has l yet, but its context is with those who
// get the next lock, and asks Err.
func (l *MultiLease) add(one *queue.Lease) {
	l.mu.Lock()
	l.leases = append(l.leases, one)
	l.mu.Unlock()
	ended, cancel := one.Context(context.Background())
	context.AfterFunc(ended, func() {
		defer cancel()
		l.endHold(one.Err())
	})
}

// taken returns the leases that there are, in the order in which they were taken.
func (l *MultiLease) taken() []*queue.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leases
}

// Leases returns the lease of each lock, in the order in which the locks were given to
// [Multi]: for their tokens and guards. Who releases one has given the whole up, and still
// must release the MultiLease.
func (l *MultiLease) Leases() []*queue.Lease {
	l.made()
	leases := l.taken()
	out := make([]*queue.Lease, len(leases))
	for i, place := range l.place {
		out[place] = leases[i]
	}
	return out
}

// Done returns a channel that is closed when the lease has been released, or any of the locks
// is lost. [MultiLease.Err] may know earlier.
func (l *MultiLease) Done() <-chan struct{} { return l.made().hold.Done() }

// Err returns nil while all of the locks are held; then why not: the error of the one that
// ended first, as [queue.Lease.Err] gives it, or [queue.ErrReleased]. It goes by the clock at
// the time of the call.
func (l *MultiLease) Err() error {
	l.made()
	for _, one := range l.taken() {
		if err := one.Err(); err != nil {
			l.endHold(err) // unless something else was first
			break
		}
	}
	return context.Cause(l.hold)
}

// Context returns a context that ends with parent, and when the lease is released or any of
// the locks lost; [context.Cause] then gives what Err of the lease does. The caller must call the
// returned function when done with it, which does not release the lease. Like that of
// [queue.Lease.Context], it goes by the clock at the time of the call. [MultiLeaseFrom] gives the
// lease back.
func (l *MultiLease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	l.made()
	misuse.Context(parent, "zklock: MultiLease.Context")
	return l.context(context.WithValue(parent, multiLeaseKey{}, l))
}

// context is Context that does not show the lease, which may lack some locks yet.
func (l *MultiLease) context(parent context.Context) (context.Context, context.CancelFunc) {
	return leasectx.New(parent, l.hold, l.Err)
}

// multiLeaseKey is the context key of a MultiLease.
type multiLeaseKey struct{}

// MultiLeaseFrom returns the lease of several locks that ctx ends with, for their tokens and
// guards: ctx is the context that [MultiLock.Do] gives to its function, or one that
// [MultiLease.Context] returned, or derived from such a context. Where several are nested, it is
// the innermost one. It returns false if there is none.
//
// The function of a Do must not release the lease, as Do does that.
func MultiLeaseFrom(ctx context.Context) (*MultiLease, bool) {
	misuse.Context(ctx, "zklock: MultiLeaseFrom")
	l, ok := ctx.Value(multiLeaseKey{}).(*MultiLease)
	return l, ok
}

// Release gives all of the locks up, the last first, as [queue.Lease.Release] does each; it
// waits for the servers' confirmations together. It returns the errors of all of them,
// joined: the causes of those that are lost, which it gives up too, and refusals.
// [queue.ErrReleasePending] is among them only when there is nothing worse.
func (l *MultiLease) Release(ctx context.Context) error {
	l.made()
	misuse.Context(ctx, "zklock: MultiLease.Release")
	errs := l.release(ctx)
	if worse := slices.DeleteFunc(slices.Clone(errs), isPending); len(worse) > 0 {
		errs = worse
	}
	return hold.Join(errs...)
}

// abandon gives up all of the locks there are, and waits for nothing.
func (l *MultiLease) abandon(ctx context.Context) {
	l.endHold(queue.ErrReleased)
	startReleases(ctx, l.taken())
}

// release starts to release each before it waits for any: where one waits for a server that
// is away, the others must not.
func (l *MultiLease) release(ctx context.Context) []error {
	var errs []error
	for _, wait := range l.startRelease(ctx) {
		if err := wait(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// startRelease ends the hold and starts to release each lock, also if a hook panics.
func (l *MultiLease) startRelease(ctx context.Context) (waits []func() error) {
	defer func() { waits = startReleases(ctx, l.taken()) }()
	if l.Err() == nil {
		l.endHold(queue.ErrReleased)
	}
	return nil
}

// startReleases starts to release the last of the leases first. If a hook panics in one release,
// the others are started all the same.
func startReleases(ctx context.Context, leases []*queue.Lease) (waits []func() error) {
	if len(leases) == 0 {
		return nil
	}
	rest, last := leases[:len(leases)-1], leases[len(leases)-1]
	defer func() { waits = append(waits, startReleases(ctx, rest)...) }()
	return append(waits, last.StartRelease(ctx))
}

// rollBack gives up what there is, and returns why, with what the servers refuse to remove
// joined to it. That has precedence over [queue.ErrBusy], which says that nothing is left.
func (l *MultiLease) rollBack(ctx context.Context, why error) error {
	refused := slices.DeleteFunc(l.release(ctx), func(err error) bool {
		return isPending(err) || errors.Is(err, session.ErrLost) || errors.Is(err, session.ErrClosed) ||
			errors.Is(err, queue.ErrReleased) // on request: see WithRevocable
	})
	switch {
	case len(refused) == 0:
		return why
	case errors.Is(why, queue.ErrBusy), errors.Is(why, errLostEarlier):
		return fmt.Errorf("%v; rolled back: %w", why, hold.Join(refused...))
	}
	return hold.Join(append([]error{why}, refused...)...)
}

func isPending(err error) bool { return errors.Is(err, queue.ErrReleasePending) }
