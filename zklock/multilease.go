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

// MultiLease is one hold of a [MultiLock]: a lease of each of its locks.
type MultiLease struct {
	of     *MultiLock
	leases []*queue.Lease // in the order of the locks
	deaf   []func()       // for each, ends what follows a request for its lock

	released atomic.Bool

	// hold ends with the first lease that ends, whose cause it has, or with a release.
	hold    context.Context
	endHold context.CancelCauseFunc

	// asked ends when another client asks for one of the locks.
	asked context.Context
	ask   context.CancelFunc
}

func (l *MultiLease) made() *MultiLease {
	if l == nil || l.hold == nil {
		panic("zklock: MultiLease not made by MultiLock.Acquire")
	}
	return l
}

func (l *MultiLease) add(one *queue.Lease) {
	l.leases, l.deaf = append(l.leases, one), append(l.deaf, one.AfterRevoke(l.ask))
	one.AfterEnd(func() { l.endHold(one.Err()) })
}

// Leases returns the lease of each lock, in the order of the arguments of [Multi]. The release of one of them ends
// the MultiLease, which must still be released.
func (l *MultiLease) Leases() []*queue.Lease {
	out := make([]*queue.Lease, len(l.made().leases))
	for i, given := range l.of.given {
		out[given] = l.leases[i]
	}
	return out
}

// Done returns a channel that is closed when the lease is released or any of the locks is lost.
func (l *MultiLease) Done() <-chan struct{} { return l.made().hold.Done() }

// Err returns nil while all of the locks are held, and then the error of the lease that ended first. It looks at the
// clock.
func (l *MultiLease) Err() error {
	for _, one := range l.made().leases {
		if err := one.Err(); err != nil {
			l.endHold(err) // no effect if it has ended
			break
		}
	}
	return context.Cause(l.hold)
}

// Revoked returns a channel that is closed when another client asks for any of the locks: see [queue.Lease.Revoked].
func (l *MultiLease) Revoked() <-chan struct{} { return l.made().asked.Done() }

// Context is [queue.Lease.Context] for all of the locks. [MultiLeaseFrom] returns the lease from it.
func (l *MultiLease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	l.made()
	misuse.Context(parent, "zklock: MultiLease.Context")
	return queue.WithEnd(context.WithValue(parent, multiLeaseKey{}, l), l.Err, multiHold{l}.AfterEnd)
}

type multiLeaseKey struct{}

// MultiLeaseFrom returns the MultiLease of the Do or [MultiLease.Context] that ctx belongs to. The function of a Do
// must not release it.
func MultiLeaseFrom(ctx context.Context) (*MultiLease, bool) {
	misuse.Context(ctx, "zklock: MultiLeaseFrom")
	l, ok := ctx.Value(multiLeaseKey{}).(*MultiLease)
	return l, ok
}

// Release gives up all of the locks, the last first, as [queue.Lease.Release] does, and joins the errors.
// [queue.ErrReleasePending] is among them only if there is no other. Later calls return what [MultiLease.Err] does.
func (l *MultiLease) Release(ctx context.Context) error {
	l.made()
	misuse.Context(ctx, "zklock: MultiLease.Release")
	return l.release(ctx, true, func(one *queue.Releasing) error { return one.Wait(ctx) })
}

// release starts all releases before it waits for one. Only the first call does: otherwise each of two would be told
// that some locks were released already.
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
	for _, stop := range l.deaf { // a shared turn can go on for long, with other leases
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

type multiHold struct{ *MultiLease }

func (h multiHold) AfterEnd(f func()) (stop func()) { return after(h.hold, f) }

func (h multiHold) IsRevoked() bool { return h.asked.Err() != nil }

func (h multiHold) AfterRevoke(f func()) (stop func()) { return after(h.asked, f) }

func after(ctx context.Context, f func()) (stop func()) {
	cancel := context.AfterFunc(ctx, f)
	return func() { cancel() }
}

// Unlock waits for all as long as for one.
func (h multiHold) Unlock(patience time.Duration) error {
	until := time.Now().Add(patience)
	return h.release(context.Background(), true, func(one *queue.Releasing) error {
		if patience != 0 { // otherwise nobody waits
			patience = cmp.Or(time.Until(until), -1)
		}
		return one.Unlock(patience)
	})
}

func (h multiHold) GiveUp(ctx context.Context) error {
	return h.release(ctx, false, func(one *queue.Releasing) error { return one.Wait(ctx) })
}
