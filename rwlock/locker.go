package rwlock

import "sync"

// Locker returns the write lock as a [sync.Locker], for code that wants one. The Locker and the
// RWMutex share one hold: Unlock of either gives back a Lock of the other.
//
// Locker of zklock.Mutex says what Lock and Unlock do, which is the same here: Lock tries again after every error, and
// logs it once a minute. When the program closes the manager, it ends its goroutine with [runtime.Goexit]. Unlock
// panics when the lock is not held, as that of [sync.RWMutex] does, and not when it was lost.
//
// If the lock is lost between Lock and Unlock, onLost is called, once for that hold, as soon as the loss is known, on a
// goroutine of its own, with an error that matches [session.ErrLost]. It is not called when the program itself closes the
// manager. onLost may be nil: then only [RWMutex.Held] and [RWMutex.Done] show the loss.
func (rw *RWMutex) Locker(onLost func(error)) sync.Locker {
	return rw.made().writes.Locker(rw.write, onLost)
}

// RLocker returns the read lock as a [sync.Locker], as [RWMutex.Locker] does the write lock. Its
// Lock is RLock, and its Unlock is RUnlock. onLost is called once for each read lock that is lost.
func (rw *RWMutex) RLocker(onLost func(error)) sync.Locker {
	return rw.made().reads.Locker(rw.read, onLost)
}
