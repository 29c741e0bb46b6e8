package hold

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/place"
)

// Lock is one lock as the process sees it: where its contenders stand, what they ask for, and whether the calls
// of one lock object share a place. The locks of zklock, rwlock and semaphore are made of it.
type Lock struct {
	Queue   *place.Queue
	Request place.Request
	Local   *Local // nil: each call has a place of its own
	Async   bool   // Unlock waits for no server; for Multi
}

// Get returns the Get of its Holds.
func (l *Lock) Get() Get[*place.Lease] {
	if l.Local != nil {
		return InOneStep(l.Local.Acquire)
	}
	return func(ctx context.Context) Acquisition[*place.Lease] { return l.Queue.Begin(ctx, l.Request) }
}

// Acquire waits for the lock.
func (l *Lock) Acquire(ctx context.Context) (*place.Lease, error) {
	if l.Local != nil {
		return l.Local.Acquire(ctx)
	}
	return l.Queue.Acquire(ctx, l.Request)
}

// TryAcquire is Acquire without the wait for other contenders. It returns ErrBusy in its place.
func (l *Lock) TryAcquire(ctx context.Context) (*place.Lease, error) {
	if l.Local != nil {
		return l.Local.TryAcquire(ctx)
	}
	return l.Queue.TryAcquire(ctx, l.Request)
}

// WhenUnused is that of its Local, if it has one. Otherwise calls share nothing.
func (l *Lock) WhenUnused(f func()) {
	if l.Local != nil {
		l.Local.WhenUnused(f)
	}
}

// InUse reports whether a call that comes now has something to share with others of this process.
func (l *Lock) InUse() bool { return l.Local != nil && l.Local.InUse() }

// asks returns the request of a contender for the lock.
func (l *Lock) asks() place.Request {
	if l.Local != nil {
		return l.Local.r
	}
	return l.Request
}

// Door leads from a public lock type T to its Lock, for those packages of this module that see only an
// interface. A lock type embeds its Door under an alias, so that the field has no exported name:
//
//	type door = hold.Door[*Mutex]
//
// The method of Door is promoted, and has no name outside of this package. So users see nothing of it.
//
// A type of a user that embeds a T has the promoted method too, and can have its own Acquire. So the Door
// leads on only from a T itself.
type Door[T Named] struct{ lock *Lock }

// Named is what all locks have.
type Named interface{ FullName() string }

// DoorTo returns a door to a lock. If the lock is nil, it leads nowhere.
func DoorTo[T Named](lock *Lock) Door[T] { return Door[T]{lock} }

func (d Door[T]) leadsFrom(lock Named) *Lock {
	if _, itself := lock.(T); itself {
		return d.lock
	}
	return nil
}

// LockOf returns the Lock behind a lock of this module. It returns nil for a lock that is of another type, or
// that has to be acquired by itself.
func LockOf(lock Named) *Lock {
	if has, ok := lock.(interface{ leadsFrom(lock Named) *Lock }); ok {
		return has.leadsFrom(lock)
	}
	return nil
}
