package rwlock

import (
	"sync"

	"github.com/turnstile-go/turnstile/internal/hold"
)

// LockerOption changes what [RWMutex.Locker] or [RWMutex.RLocker] returns. A nil option is ignored.
type LockerOption interface{ apply(*hold.LockerConfig) }

type lockerOption func(*hold.LockerConfig)

func (o lockerOption) apply(c *hold.LockerConfig) { o(c) }

// OnLost sets a function to call when the lock is lost between Lock and Unlock. f is called once
// per hold, as soon as the loss is known, from a goroutine of its own, with an error that matches
// [session.ErrLost]. A program that cannot go on safely ends itself there. f is not called when
// the program itself closes the manager. Default, also for nil: nothing is called, and only
// [RWMutex.Held] and [RWMutex.Done], or [Reader.Held] and [Reader.Done], show the loss.
func OnLost(f func(error)) LockerOption {
	return lockerOption(func(c *hold.LockerConfig) { c.OnLost = f })
}

// OnRefused sets a function to call when Lock fails for another reason than the end of the manager, such as zk.ErrNoAuth
// or [queue.ErrConflict], and is about to try again. f is called in the goroutine that called Lock: at once, when the error
// changes, and once a minute while it stays the same. A program that takes such an error for its own end panics or exits
// in f. Default, also for nil: a warning in the log of the manager.
func OnRefused(f func(error)) LockerOption {
	return lockerOption(func(c *hold.LockerConfig) { c.OnRefused = f })
}

// OnClosed sets a function to call when Lock cannot get the lock any more because the program has
// closed the manager. f is called in the goroutine that called Lock, with an error that matches
// [session.ErrClosed]. When f returns, Lock ends that goroutine. A program that prefers another
// end can panic or exit in f. Default, also for nil: a warning in the log of the manager.
func OnClosed(f func(error)) LockerOption {
	return lockerOption(func(c *hold.LockerConfig) { c.OnClosed = f })
}

// Locker returns the write lock as a [sync.Locker], for code that wants one. The Locker and the
// RWMutex share one hold: Unlock of either gives back a Lock of the other.
//
// Its Lock returns only when it holds the lock. It tries again after every error, such as
// [queue.ErrConflict] or zk.ErrNoAuth: an operator can repair that, and no wrong lock does harm meanwhile. It logs the
// error as a warning to the manager's logger ([session.WithLogger]): at once, and then once a minute as long as the error
// stays the same. A program that would rather end than wait has [OnRefused].
// Its Unlock panics when the lock is not held, as that of [sync.RWMutex] does. It does not panic when
// the lock was lost: see [OnLost].
//
// When the program closes the manager, Lock cannot get the lock and cannot return an error. To return would be to work
// without the lock, to wait for ever would be to hang at shutdown, and a panic would turn each shutdown into a crash. So it
// logs a warning and ends the goroutine that called it, with [runtime.Goexit]. Deferred functions
// run, so wait groups are told. A deferred Unlock of this Locker is allowed. Code after Lock does
// not run. This has two consequences:
//
//   - If the main goroutine is in Lock, it ends without ending the program. The program goes on
//     until another goroutine ends it, and crashes when no goroutine is left.
//   - A test that is in Lock fails, since package testing does not allow Goexit.
//
// So close the manager after the goroutines that use the Locker have ended, or use [OnClosed].
func (rw *RWMutex) Locker(opts ...LockerOption) sync.Locker {
	return rw.made().writes.Locker(hold.LockerConfigOf(opts, LockerOption.apply))
}

// RLocker returns the read lock as a [sync.Locker], as [RWMutex.Locker] does the write lock. Its
// Lock is RLock, and its Unlock is RUnlock.
func (rw *RWMutex) RLocker(opts ...LockerOption) sync.Locker {
	return rw.made().reads.Locker(hold.LockerConfigOf(opts, LockerOption.apply))
}
