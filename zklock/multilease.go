package zklock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
)

// MultiLease is one hold of a [MultiLock]: a lease of each of its locks, held as one. Its methods
// may be called by any number of goroutines at once. They panic if no acquisition of a MultiLock has
// made the MultiLease.
type MultiLease struct {
	given []int  // the index of each lease among the locks given to Multi
	paths string // for messages

	mu       sync.Mutex
	leases   []*queue.Lease // in the order in which they were taken; grows until all are taken
	deaf     []func()       // for each of them, ends what follows a request for its lock
	released bool           // by a call of start

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

func newMultiLease(given []int, paths string) *MultiLease {
	l := &MultiLease{given: given, paths: paths}
	l.hold, l.endHold = context.WithCancelCause(context.Background())
	l.asked, l.ask = context.WithCancel(context.Background())
	return l
}

// add adds a lease. No caller has l yet, but the acquisition of the next lock has its context,
// which calls Err.
func (l *MultiLease) add(one *queue.Lease) {
	stop := one.AfterRevoke(l.ask)
	l.mu.Lock()
	l.leases, l.deaf = append(l.leases, one), append(l.deaf, stop)
	l.mu.Unlock()
	one.AfterEnd(func() { l.endHold(one.Err()) })
}

// taken returns the leases so far, in the order in which they were taken.
func (l *MultiLease) taken() []*queue.Lease {
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
		out[given] = leases[i]
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
	return l.context(context.WithValue(parent, multiLeaseKey{}, l))
}

// context is Context without the lease in the context, since it may still lack some locks.
func (l *MultiLease) context(parent context.Context) (context.Context, context.CancelFunc) {
	return queue.WithEnd(parent, l.Err, func(f func()) (stop func()) { return after(l.hold, f) })
}

// after has f called in a goroutine of its own when ctx has ended. stop cancels that.
func after(ctx context.Context, f func()) (stop func()) {
	cancel := context.AfterFunc(ctx, f)
	return func() { cancel() }
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
// other. Of several calls only the first one does that. The others return at once what [MultiLease.Err] does.
func (l *MultiLease) Release(ctx context.Context) error {
	l.made()
	misuse.Context(ctx, "zklock: MultiLease.Release")
	all, err := l.start(func(one *queue.Lease) *queue.Releasing { return one.StartRelease(ctx) })
	if err != nil {
		return err
	}
	var errs []error
	for _, one := range all {
		errs = append(errs, one.Wait(ctx))
	}
	if others := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil || isPending(err) }); len(others) > 0 {
		errs = others
	}
	return share.Join(errs...)
}

// start starts the releases of all locks, the last first, before anybody waits for one. Only the first call does: if several
// callers each released some of the locks, each would be told that others were released already. The other calls
// return why the hold has ended.
func (l *MultiLease) start(release func(*queue.Lease) *queue.Releasing) (all []*queue.Releasing, err error) {
	if l.Err() == nil {
		l.endHold(queue.ErrReleased)
	}
	l.mu.Lock()
	deaf, again := l.deaf, l.released
	l.deaf, l.released = nil, true
	l.mu.Unlock()
	if again {
		return nil, l.ended()
	}
	for _, stop := range deaf { // a turn that goroutines share can go on for long, with other leases
		stop()
	}
	for _, one := range slices.Backward(l.taken()) {
		all = append(all, release(one))
	}
	return all, nil
}

// ended returns why the hold has ended, for a release. The error of a loss names the lock.
func (l *MultiLease) ended() error {
	err := context.Cause(l.hold)
	if errors.Is(err, queue.ErrReleased) {
		return &queue.OpError{Op: "release", Path: l.paths, Err: err}
	}
	return err
}

// giveUp gives up all of the locks, none of which was used, and waits for the servers until ctx ends.
func (l *MultiLease) giveUp(ctx context.Context) (errs []error) {
	all, err := l.start(func(one *queue.Lease) *queue.Releasing { return one.StartGiveUp(ctx) })
	if err != nil {
		return []error{err}
	}
	for _, one := range all {
		errs = append(errs, one.Wait(ctx))
	}
	return errs
}

func isPending(err error) bool { return errors.Is(err, queue.ErrReleasePending) }

// Revoked returns a channel that is closed when another client asks for the first of the locks: see [queue.Lease.Revoked].
func (l *MultiLease) Revoked() <-chan struct{} { return l.made().asked.Done() }

// multiHold is a MultiLease as [share.Holds] need it.
type multiHold struct{ *MultiLease }

func (h multiHold) AfterEnd(f func()) (stop func()) { return after(h.hold, f) }

func (h multiHold) IsRevoked() bool { return h.asked.Err() != nil }

func (h multiHold) AfterRevoke(f func()) (stop func()) { return after(h.asked, f) }

// Unlock gives up all of the locks, and waits for the servers as long as for one of them.
func (h multiHold) Unlock(patience time.Duration) error {
	until := time.Now().Add(patience)
	all, err := h.start(func(one *queue.Lease) *queue.Releasing { return one.StartRelease(context.Background()) })
	if err != nil {
		return err
	}
	var errs []error
	for _, one := range all {
		if patience != 0 { // otherwise nobody waits, and the log is not told
			patience = cmp.Or(time.Until(until), -1)
		}
		errs = append(errs, one.Unlock(patience))
	}
	return share.Join(errs...)
}

// GiveUp gives up locks that no caller has got.
func (h multiHold) GiveUp(ctx context.Context) error { return share.Join(h.giveUp(ctx)...) }
