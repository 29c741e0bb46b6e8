package zklock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
)

// MultiLease is one hold of a [MultiLock]: a lease of each of its locks, held as one.
type MultiLease struct {
	of     *MultiLock
	leases []*queue.Lease // in the order of the locks
	deaf   []func()       // for each of them, ends what follows a request for its lock

	released atomic.Bool // a call of release has begun to release the leases

	// hold ends with the first lease that ends, whose cause it has, or with Release.
	hold    context.Context
	endHold context.CancelCauseFunc

	// asked ends when another client asks for the first of the locks.
	asked context.Context
	ask   context.CancelFunc
}

// made returns l. It panics if l is nil or a zero value.
func (l *MultiLease) made() *MultiLease {
	if l == nil || l.hold == nil {
		panic("zklock: MultiLease not made by MultiLock.Acquire")
	}
	return l
}

// add adds a lease. No other goroutine has l yet.
func (l *MultiLease) add(one *queue.Lease) {
	l.leases, l.deaf = append(l.leases, one), append(l.deaf, one.AfterRevoke(l.ask))
	one.AfterEnd(func() { l.endHold(one.Err()) })
}

// Leases returns the lease of each lock, in the order of the arguments of [Multi], for their tokens and guards. The
// release of one of them ends the MultiLease, which must still be released.
func (l *MultiLease) Leases() []*queue.Lease {
	out := make([]*queue.Lease, len(l.made().leases))
	for i, given := range l.of.given {
		out[given] = l.leases[i]
	}
	return out
}

// Done returns a channel that is closed when the lease is released or any of the locks is lost. [MultiLease.Err] may know
// of a loss earlier.
func (l *MultiLease) Done() <-chan struct{} { return l.made().hold.Done() }

// Err returns nil while all of the locks are held. After that it returns [queue.ErrReleased], or the [queue.Lease.Err] of
// the lease that ended first. It goes by the clock at the time of the call.
func (l *MultiLease) Err() error {
	for _, one := range l.made().leases {
		if err := one.Err(); err != nil {
			l.endHold(err) // no effect if it has ended
			break
		}
	}
	return context.Cause(l.hold)
}

// Revoked returns a channel that is closed when another client asks for the first of the locks: see
// [queue.Lease.Revoked].
func (l *MultiLease) Revoked() <-chan struct{} { return l.made().asked.Done() }

// Context is [queue.Lease.Context] for all of the locks: the context ends when parent ends, the lease is released or
// any of the locks is lost, with what Err returns as its cause. [MultiLeaseFrom] returns the lease from it.
func (l *MultiLease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	l.made()
	misuse.Context(parent, "zklock: MultiLease.Context")
	return queue.WithEnd(context.WithValue(parent, multiLeaseKey{}, l), l.Err, multiHold{l}.AfterEnd)
}

// multiLeaseKey is the context key of a MultiLease.
type multiLeaseKey struct{}

// MultiLeaseFrom returns the MultiLease whose end ends ctx, as [queue.LeaseFrom] does: from a context of
// [MultiLock.Do] or [MultiLease.Context], or one derived from these. The function of a Do must not release the lease,
// since Do does.
func MultiLeaseFrom(ctx context.Context) (*MultiLease, bool) {
	misuse.Context(ctx, "zklock: MultiLeaseFrom")
	l, ok := ctx.Value(multiLeaseKey{}).(*MultiLease)
	return l, ok
}

// Release gives up all of the locks, the last first, each as [queue.Lease.Release] does, and then waits until the servers
// have confirmed all of them or ctx ends. It joins their errors: the causes of those that are lost, and refusals.
// [queue.ErrReleasePending] is among them only if there is no other. Of several calls only the first one does that. The
// others return at once what [MultiLease.Err] does.
func (l *MultiLease) Release(ctx context.Context) error {
	l.made()
	misuse.Context(ctx, "zklock: MultiLease.Release")
	return l.release(ctx, true, func(one *queue.Releasing) error { return one.Wait(ctx) })
}

// release starts the releases of all locks, before it waits for one. Only the first call does: if several callers each
// released some of the locks, each would be told that others were released already. The other calls return why the hold
// has ended. The error of a loss names the lock.
func (l *MultiLease) release(ctx context.Context, used bool, wait func(*queue.Releasing) error) error {
	if l.Err() == nil {
		l.endHold(queue.ErrReleased)
	}
	if l.released.Swap(true) {
		err := context.Cause(l.hold)
		if errors.Is(err, queue.ErrReleased) {
			err = l.of.holds.Failed("release", err)
		}
		return err
	}
	for _, stop := range l.deaf { // a turn that goroutines share can go on for long, with other leases
		stop()
	}
	var all []*queue.Releasing
	for _, one := range slices.Backward(l.leases) {
		all = append(all, one.StartRelease(ctx, used))
	}
	var errs, pending []error
	for _, one := range all {
		if err := wait(one); errors.Is(err, queue.ErrReleasePending) {
			pending = append(pending, err)
		} else {
			errs = append(errs, err)
		}
	}
	return cmp.Or(share.Join(errs...), share.Join(pending...))
}

// multiHold is a MultiLease as [share.Holds] need it.
type multiHold struct{ *MultiLease }

func (h multiHold) AfterEnd(f func()) (stop func()) { return after(h.hold, f) }

func (h multiHold) IsRevoked() bool { return h.asked.Err() != nil }

func (h multiHold) AfterRevoke(f func()) (stop func()) { return after(h.asked, f) }

// after has f called in a goroutine of its own when ctx has ended. stop cancels that.
func after(ctx context.Context, f func()) (stop func()) {
	cancel := context.AfterFunc(ctx, f)
	return func() { cancel() }
}

// Unlock gives up all of the locks, and waits for the servers as long as for one of them.
func (h multiHold) Unlock(patience time.Duration) error {
	until := time.Now().Add(patience)
	return h.release(context.Background(), true, func(one *queue.Releasing) error {
		if patience != 0 { // otherwise nobody waits, and the log is not told
			patience = cmp.Or(time.Until(until), -1)
		}
		return one.Unlock(patience)
	})
}

// GiveUp gives up locks that no caller has got, and waits for the servers until ctx ends.
func (h multiHold) GiveUp(ctx context.Context) error {
	return h.release(ctx, false, func(one *queue.Releasing) error { return one.Wait(ctx) })
}
