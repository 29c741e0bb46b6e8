package zklock

import (
	"sync"

	"github.com/turnstile-go/turnstile/internal/hold"
)

// LockerOption changes what [Mutex.Locker] returns, and the like of other locks.
type LockerOption = hold.LockerOption

// OnLost sets what to call when the lock is lost between Lock and Unlock: once per hold,
// as soon as it is known, from a goroutine of its own, with an error that matches
// [session.ErrLost] or [session.ErrClosed]. A program that cannot go on safely ends
// itself here. Default: the loss shows in [Mutex.Held] alone.
func OnLost(f func(error)) LockerOption { return hold.OnLost(f) }

// Locker returns the mutex as a [sync.Locker], for code that wants one. It shares the
// holder's slot with Lock and Unlock of the Mutex.
//
// Its Lock returns only when it holds the lock, whatever has to be tried again; it panics
// when the manager is closed, as there is no other way to say so. Its Unlock panics when
// the lock is not held, as that of [sync.Mutex] does; a lock that was lost does not
// panic: see [OnLost].
func (m *Mutex) Locker(opts ...LockerOption) sync.Locker {
	m.made()
	return m.holds.Locker(m.Acquire, opts...)
}
