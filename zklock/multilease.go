package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/leasectx"
	"github.com/turnstile-go/turnstile/internal/maxwait"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// MultiLease is one hold of a [MultiLock]: a lease of each of its locks, held as one. Its methods
// may be called by any number of goroutines at once. They panic if no acquisition of a MultiLock has
// made the MultiLease.
type MultiLease struct {
	given []int  // the index of each lease among the locks given to Multi
	paths string // for messages

	mu     sync.Mutex
	leases []*place.Lease // in the order in which they were taken; grows until all are taken

	// hold ends with the first lease that ends, whose cause it has, or with Release.
	hold    context.Context
	endHold context.CancelCauseFunc

	revocation place.Revocation // comes with the first of the leases'
}

// made returns l. It panics if l is nil or a zero value.
func (l *MultiLease) made() *MultiLease {
	if l == nil || l.hold == nil {
		panic("zklock: MultiLease not made by MultiLock.Acquire")
	}
	return l
}

func newMultiLease(given []int, paths string) *MultiLease {
	l := &MultiLease{given: given, paths: paths}
	l.hold, l.endHold = context.WithCancelCause(context.Background())
	return l
}

// add adds a lease. No caller has l yet, but the acquisition of the next lock has its context,
// which calls Err.
func (l *MultiLease) add(one *place.Lease) {
	l.mu.Lock()
	l.leases = append(l.leases, one)
	l.mu.Unlock()
	one.AfterEnd(func() { l.endHold(one.Err()) })
	one.Revocation().After(l.revocation.Tell)
}

// taken returns the leases so far, in the order in which they were taken.
func (l *MultiLease) taken() []*place.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leases
}

// Leases returns the lease of each lock, in the order of the arguments of [Multi], for their
// tokens and guards. The release of one of them ends the MultiLease, which must still be released.
func (l *MultiLease) Leases() []*queue.Lease {
	l.made()
	leases := l.taken()
	out := make([]*queue.Lease, len(leases))
	for i, given := range l.given {
		out[given] = (*queue.Lease)(leases[i])
	}
	return out
}

// Done returns a channel that is closed when the lease is released or any of the locks is lost.
// [MultiLease.Err] may know of a loss earlier.
func (l *MultiLease) Done() <-chan struct{} { return l.made().hold.Done() }

// Err returns nil while all of the locks are held. After that it returns [queue.ErrReleased], or
// the [queue.Lease.Err] of the lease that ended first. It goes by the clock at the time of the call.
func (l *MultiLease) Err() error {
	l.made()
	for _, one := range l.taken() {
		if err := one.Err(); err != nil {
			l.endHold(err) // no effect if it has ended
			break
		}
	}
	return context.Cause(l.hold)
}

// Context returns a context that ends when parent ends, the lease is released or any of the locks
// is lost. [context.Cause] then returns what Err of the lease does. The caller must call the
// returned function when done with the context; that does not release the lease. Err of the context
// goes by the clock at the time of the call, as that of [queue.Lease.Context] does. [MultiLeaseFrom]
// returns the lease from the context.
func (l *MultiLease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	l.made()
	misuse.Context(parent, "zklock: MultiLease.Context")
	return l.context(context.WithValue(maxwait.Without(parent), multiLeaseKey{}, l))
}

// context is Context without the lease in the context, since it may still lack some locks.
func (l *MultiLease) context(parent context.Context) (context.Context, context.CancelFunc) {
	return leasectx.New(parent, l.hold, l.Err)
}

// multiLeaseKey is the context key of a MultiLease.
type multiLeaseKey struct{}

// MultiLeaseFrom returns the MultiLease whose end ends ctx, for its tokens and guards. ctx is the
// context that [MultiLock.Do] passes to its function, one that [MultiLease.Context] returned, or one
// derived from these. If several are nested, it returns the innermost. It returns false if there is
// none.
//
// The function of a Do must not release the lease, since Do does.
func MultiLeaseFrom(ctx context.Context) (*MultiLease, bool) {
	misuse.Context(ctx, "zklock: MultiLeaseFrom")
	l, ok := ctx.Value(multiLeaseKey{}).(*MultiLease)
	return l, ok
}

// Release gives up all of the locks, the last first, each as [queue.Lease.Release] does, and then
// waits until the servers have confirmed all of them or ctx ends. It joins their errors: the causes
// of those that are lost, and refusals. [queue.ErrReleasePending] is among them only if there is no
// other.
func (l *MultiLease) Release(ctx context.Context) error {
	l.made()
	misuse.Context(ctx, "zklock: MultiLease.Release")
	return multiHold{l}.Release(ctx, place.Done)
}

// Revoked returns a channel that is closed when another client asks for the first of the locks: see [queue.Lease.Revoked].
func (l *MultiLease) Revoked() <-chan struct{} { return l.made().revocation.Wait() }

// multiHold is a MultiLease as its MultiLock has it, which says how it ends.
type multiHold struct{ *MultiLease }

func (h multiHold) AfterEnd(f func()) { context.AfterFunc(h.hold, f) }

func (h multiHold) Revocation() *place.Revocation { return &h.revocation }

// Work returns the context for work under the locks.
func (h multiHold) Work(parent context.Context) (context.Context, context.CancelFunc) {
	return place.Working(parent, &h.revocation, place.Failed("lock", h.paths, place.ErrRevoked), h.Context)
}

// Release gives up all of the locks. It is that of MultiLease.
func (h multiHold) Release(ctx context.Context, end place.End) error {
	errs := h.release(ctx, end)
	if others := slices.DeleteFunc(slices.Clone(errs), isPending); len(others) > 0 {
		errs = others
	}
	return hold.Join(errs...)
}

// Unlock gives up all of the locks, and waits for the servers as long as for one of them, or not at all.
func (h multiHold) Unlock(end place.End, wait bool) error {
	var errs []error
	until := time.Now().Add(place.UnlockPatience)
	for _, one := range h.start(context.Background(), end) {
		if wait {
			errs = append(errs, one.Unlock(until))
		} else {
			errs = append(errs, one.Leave())
		}
	}
	return hold.Join(errs...)
}

// release gives up all of the locks, and waits for the servers until ctx ends.
func (l *MultiLease) release(ctx context.Context, end place.End) (errs []error) {
	for _, one := range l.start(ctx, end) {
		if err := one.Wait(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// start starts all releases, before anybody waits for one.
func (l *MultiLease) start(ctx context.Context, end place.End) []*place.Releasing {
	if l.Err() == nil {
		l.endHold(queue.ErrReleased)
	}
	return place.StartReleases(ctx, l.taken(), end)
}

// rollBack gives up the locks so far, none of which was used, and those that rest has to give up. It returns why, joined with
// what the servers refuse to remove. Such a refusal replaces [queue.ErrBusy], which says that nothing
// is left behind.
func (l *MultiLease) rollBack(ctx context.Context, why error, rest *taking) error {
	refused := append(l.release(ctx, place.Unwanted), rest.leave(ctx, why))
	refused = slices.DeleteFunc(refused, func(err error) bool {
		return err == nil || isPending(err) || errors.Is(err, session.ErrLost) || errors.Is(err, session.ErrClosed) ||
			errors.Is(err, queue.ErrReleased) // by a hook
	})
	switch {
	case len(refused) == 0:
		return why
	case errors.Is(why, queue.ErrBusy), errors.Is(why, errLostEarlier):
		return fmt.Errorf("%v; rolled back: %w", why, hold.Join(refused...)) //nolint:errorlint // not busy: a refusal
	}
	return hold.Join(append([]error{why}, refused...)...)
}

func isPending(err error) bool { return errors.Is(err, queue.ErrReleasePending) }
