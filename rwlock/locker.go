package rwlock

import (
	"sync"

	"github.com/turnstile-go/turnstile/internal/hold"
)

// LockerOption changes what [RWMutex.Locker] and [RWMutex.RLocker] return.
type LockerOption = hold.LockerOption

// OnLost sets what to call when the lock is lost between Lock and Unlock: once per hold,
// as soon as it is known, from a goroutine of its own, with an error that matches
// [session.ErrLost]. A program that cannot go on safely ends itself here. It is not called
// when the program itself closes the manager. Default: the loss shows in [RWMutex.Held] and
// [RWMutex.RHeld] alone.
func OnLost(f func(error)) LockerOption { return hold.OnLost(f) }

// OnClosed sets what to call when Lock cannot get the lock any more since the program has closed
// the manager. It is called in the goroutine that called Lock, with an error that matches
// [session.ErrClosed]. When it returns, Lock ends that goroutine; a program that prefers another
// end can panic here, or exit. Default: a line in the log of the manager, as a warning.
func OnClosed(f func(error)) LockerOption { return hold.OnClosed(f) }

// Locker returns the write lock as a [sync.Locker], for code that wants one. It is the
// same as Lock and Unlock of the RWMutex.
//
// Its Lock returns only when it holds the lock, whatever has to be tried again. Errors that it
// tries again, such as [queue.ErrConflict] or zk.ErrNoAuth, go to the log of the manager
// ([session.WithLogger]) as warnings: at once, and then once a minute for as long as they stay
// the same. Its Unlock panics when the lock is not held, as that of [sync.RWMutex] does; a lock
// that was lost does not panic: see [OnLost].
//
// When the program closes the manager, Lock ends the goroutine that called it, by
// [runtime.Goexit], after a line in the log: it cannot return without the lock, and has no way
// to return an error. Deferred functions run, so wait groups are told, and a deferred Unlock of
// this Locker is allowed. Code after Lock does not run. This has two consequences:
//
//   - A main goroutine that is in Lock then ends without ending the program, which goes on until
//     its other goroutines end it, or crashes when none is left.
//   - A test that is in Lock then fails: package testing does not allow Goexit.
//
// So close the manager after the goroutines that use the Locker have ended, or use [OnClosed].
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
