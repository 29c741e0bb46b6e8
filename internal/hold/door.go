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

	// For Multi.

	Async bool // Unlock waits for no server

	// Alone gets the lock where one node in one queue does not do it. Nil: one node does.
	Alone func(ctx context.Context, try bool) (*place.Lease, error)

	// LooksAlso has what a try of the lock looks at besides its queue.
	LooksAlso []place.Ask

	// Owned has the holds by which an owner may have the lock, so that it would wait for itself.
	Owned []*Holds[*place.Lease]
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
	switch {
	case l.Alone != nil:
		return l.Alone(ctx, false)
	case l.Local != nil:
		return l.Local.Acquire(ctx)
	}
	return l.Queue.Acquire(ctx, l.Request)
}

// TryAcquire is Acquire without the wait for other contenders. It returns ErrBusy in its place.
func (l *Lock) TryAcquire(ctx context.Context) (*place.Lease, error) {
	switch {
	case l.Alone != nil:
		return l.Alone(ctx, true)
	case l.Local != nil:
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

// HeldBy returns the lease that an owner has of the lock, lost or not. It returns nil if it has none.
func (l *Lock) HeldBy(owner *Owner) *place.Lease {
	for _, holds := range l.Owned {
		if held := holds.Of(owner); held != nil {
			return held.Lease
		}
	}
	return nil
}

// looksAt returns what a try of the lock looks at.
func (l *Lock) looksAt() []place.Ask {
	return append([]place.Ask{{Queue: l.Queue, Request: l.asks()}}, l.LooksAlso...)
}

// asks returns the request of a contender for the lock.
func (l *Lock) asks() place.Request {
	if l.Local != nil {
		return l.Local.r
	}
	return l.Request
}

// Door leads from a public lock type T to its Lock, for Multi, which sees only an interface. A lock type
// embeds its Door under an alias, so that the field has no exported name:
//
//	type door = hold.Door[*Mutex]
//
// The method of Door is promoted, and has no name outside of this package. So users see nothing of it, and
// only types with a Door lead to a Lock.
//
// A type of a user that embeds a T has the promoted method too, and can have its own Acquire. So the Door
// leads on only from a T itself.
type Door[T any] struct{ lock *Lock }

// DoorTo returns a door to a lock.
func DoorTo[T any](lock *Lock) Door[T] { return Door[T]{lock} }

func (d Door[T]) leadsFrom(lock any) *Lock {
	if _, itself := lock.(T); itself {
		return d.lock
	}
	return nil
}

// LockOf returns the Lock behind a lock of this module. It returns nil for one of another type.
func LockOf(lock any) *Lock {
	if l, ok := lock.(interface{ leadsFrom(lock any) *Lock }); ok {
		return l.leadsFrom(lock)
	}
	return nil
}
