package zklock

import "sync"

// Locker returns the mutex as a [sync.Locker], for code that wants one. The Locker and the Mutex
// share one hold: Unlock of either gives back a Lock of the other.
//
// If the lock is lost between Lock and Unlock, onLost is called, once for that hold, with an error that matches
// [session.ErrLost]. It is called as soon as the loss is known, on a goroutine of its own, so it may block. If Unlock comes
// at the same moment, onLost may be called after Unlock has returned. A program that cannot go on safely ends itself in
// onLost. It is not called when the program itself closes the manager. onLost may be nil: then only [Mutex.Held] and
// [Mutex.Done] show the loss.
//
// Lock returns only when it holds the lock. It tries again after every error, such as
// [queue.ErrConflict] or zk.ErrNoAuth: an operator can repair that, and no wrong lock does harm meanwhile. It logs the
// error as a warning to the manager's logger ([session.WithLogger]): at once, and then once a minute, for all goroutines in
// Lock together.
//
// Unlock panics when the lock is not held, as that of [sync.Mutex] does. It does not panic when the lock was lost.
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
// So close the manager after the goroutines that use the Locker have ended.
func (m *Mutex) Locker(onLost func(error)) sync.Locker { return m.made().holds.Locker(m.get, onLost) }
