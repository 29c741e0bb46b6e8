package rwlock

import (
	"sync"

	"github.com/turnstile-go/turnstile/internal/hold"
)

// LockerOption changes what [RWMutex.Locker] and [RWMutex.RLocker] return.
type LockerOption = hold.LockerOption

// OnLost sets what to call when the lock is lost between Lock and Unlock: once per hold,
// as soon as it is known, from a goroutine of its own, with an error that matches
// [session.ErrLost] or [session.ErrClosed]. A program that cannot go on safely ends
// itself here. Default: the loss shows in [RWMutex.Held] and [RWMutex.RHeld] alone.
func OnLost(f func(error)) LockerOption { return hold.OnLost(f) }

// Locker returns the write lock as a [sync.Locker], for code that wants one. It is the
// same as Lock and Unlock of the RWMutex.
//
// Its Lock returns only when it holds the lock, whatever has to be tried again; it panics
// when the manager is closed, as there is no other way to say so. Its Unlock panics when
// the lock is not held, as that of [sync.RWMutex] does; a lock that was lost does not
// panic: see [OnLost].
func (rw *RWMutex) Locker(opts ...LockerOption) sync.Locker {
	rw.made()
	return rw.writes.Locker(rw.write(rw.q.Acquire), opts...)
}

// RLocker returns the read lock as a [sync.Locker], as [RWMutex.Locker] does the write
// lock: its Lock is an RLock, its Unlock an RUnlock.
func (rw *RWMutex) RLocker(opts ...LockerOption) sync.Locker {
	rw.made()
	return rw.reads.Locker(rw.read(rw.q.Acquire), opts...)
}
