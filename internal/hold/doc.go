// Package hold keeps the holds that Lock, TryLock and Do of one lock object have taken. It decides
// which of them an Unlock gives back, since Unlock has no handle. The locks of zklock, rwlock
// and semaphore consist of a [Holds] and a [place.Lock].
//
// # Goroutines and mutexes
//
// The package has no goroutine of its own: calls wait in that of their caller. Holds.mu is held for a look at the list
// of holds only, and never while a lease is asked for, looked at or given back.
//
// # Files
//
//	hold       one lease, and the calls that share it
//	holds      the holds of a lock object, and the slot for one
//	owner      owners, which enter their holds again
//	lock       Lock, TryLock: on to a lease, and into the slot
//	slot       the wait for the Unlock of a hold that is lost
//	get        how a lease is got, in steps
//	interrupt  calls that are called back when the hold in the slot is lost
//	unlock     Unlock, Do, TryDo, and how long they wait for the confirmation
//	locker     a sync.Locker
//	complaints which errors of that go to the log
//	enderror   the error of a Do whose lock was lost
//	join       several errors as one
//	managers   the managers of a lock: whether they are closed, and their log
//	options    what options of all locks have in common
package hold
