// Package tusd has replicas of an upload server, made with github.com/tus/tusd/v2, share the locks of the uploads.
//
// A client whose connection broke goes on at another replica, while the first one still waits for more of the body. So a
// tusd Lock has a callback: another request asks the holder to give the upload up. [Locker] asks by zklock.Revoke. It
// calls the same callback after a loss. So this interface does end the work: tusd closes the body of the request.
//
// The end is not at once. tusd gives the store time to write what it has of the body: the contexts of a store end
// GracefulRequestCompletionTimeout after the callback, 10 s by default. A replica that was cut off can write beside the
// next holder in that time. Set it to less than the margin of the session, which is a tenth of its timeout unless
// session.WithMargin says otherwise. A replica that stands still can write later: tusd has no place for a fencing token.
package tusd

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Locker is a handler.Locker.
type Locker struct {
	manager *session.Manager
	locks   *zklock.Keyed
}

// New returns a Locker whose locks are in the directory dir.
func New(m *session.Manager, dir string) (*Locker, error) {
	locks, err := zklock.NewKeyed(m, dir)
	if err != nil {
		return nil, err
	}
	return &Locker{m, locks}, nil
}

// UseIn puts the Locker into a composer.
func (l *Locker) UseIn(c *handler.StoreComposer) { c.UseLocker(l) }

// NewLock returns a lock for an upload. It sends nothing.
func (l *Locker) NewLock(id string) (handler.Lock, error) { return &lock{locker: l, id: id}, nil }

type lock struct {
	locker *Locker
	id     string
	lease  *queue.Lease
}

// calls numbers the calls of Lock, so that a call knows its own node.
var calls atomic.Int64

// Lock asks each holder ahead to give the upload up, and waits until all have done so, or until ctx ends.
func (l *lock) Lock(ctx context.Context, requestUnlock func()) (err error) {
	l.lease, err = l.locker.locks.TryAcquire(ctx, l.id)
	if errors.Is(err, queue.ErrBusy) {
		label := "tusd " + strconv.FormatInt(calls.Add(1), 10)
		asking, done := context.WithCancel(ctx)
		var asker sync.WaitGroup
		asker.Go(func() { l.ask(asking, label) })
		l.lease, err = l.locker.locks.Acquire(queue.WithLabel(ctx, label), l.id)
		done()
		asker.Wait()
	}
	if err != nil {
		if ctx.Err() != nil {
			return handler.ErrLockTimeout
		}
		return err
	}
	go func(lease *queue.Lease) {
		select {
		case <-lease.Revoked():
		case <-lease.Done():
		}
		if !errors.Is(lease.Err(), queue.ErrReleased) { // asked for, or lost
			requestUnlock()
		}
	}(l.lease)
	return nil
}

// ask asks one holder after the other, until it sees the caller's own node.
func (l *lock) ask(ctx context.Context, label string) {
	q, err := queue.New(l.locker.manager, l.locker.locks.Path(l.id))
	if err != nil {
		return
	}
	for holder, err := range q.Observe(ctx, queue.Mutex()) {
		if err != nil || holder.Own && holder.Label == label {
			return
		}
		if holder.Path != "" {
			_ = zklock.Revoke(ctx, l.locker.manager, holder.Path) // that is gone if it has left meanwhile
		}
	}
}

// Unlock gives the upload up. It returns an error if the lock was lost.
func (l *lock) Unlock() error {
	err := l.lease.Release(context.Background())
	if errors.Is(err, queue.ErrReleasePending) {
		return nil
	}
	return err
}
