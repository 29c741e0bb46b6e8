// Package hold is the process's side of a lock: its owners in this process, the goroutines that wait, and
// their order. The locks of zklock, rwlock and semaphore consist of a [Holds] and a [Lock]. Package place is
// below: it has the places in the queue on the servers, and knows no goroutines that share one.
//
// # Holds
//
// A [Holds] keeps the holds that Lock, TryLock and Do of one lock object have taken. It enters an owner's hold
// again, and decides which hold an Unlock gives back, since Unlock has no handle. An object for one hold at a
// time has a slot: a hold that is lost keeps it until its Unlock, and nobody gets a lease meanwhile.
//
// # Places that a process shares
//
// A [Lock] with a [Local] shares places. Without one each call has a place of its own. At most one place of a
// Local is open to goroutines: one that a single goroutine contends for, one that a shared contender contends
// for, or that of a turn, which is held or kept. A goroutine that comes is admitted so:
//
//	no place is open        it contends by itself; readers have a shared contender
//	one contends by itself  it waits; if that has to wait for others too, it becomes the shared contender of both
//	a shared contender      it waits with the others
//	a turn that is held     it waits until the lock is handed over to it; a reader holds at once
//	a turn that is kept     it holds at once, without a request
//
// When the turn is over, the waiters that are left get a shared contender. The place of readers is closed to
// further ones as soon as another contender may have come: then the next reader has a place of its own.
//
// A place that is kept is used again only while a watch on the children is pending that was set, on this
// connection, by a listing that shows our node and no contender that has to wait for it. So contenders
// of any library end its use: see WithLazyRelease of package queue.
//
// # Goroutines and mutexes
//
// Calls wait in the goroutine of their caller. A Local has one goroutine more while a shared contender
// contends, and one while readers list again. Holds.mu is held for a look at the list of holds only, and never
// while a lease is asked for, looked at or given back. Local.mu is held while a Local decides which waiter is
// next. Below it, only mutexes of places, watches and the session are locked, and no code sends, waits or
// calls a hook.
//
// # Files
//
//	hold          one lease, and the calls that share it
//	holds         the holds of a lock object, and the slot for one
//	owner         owners, which enter their holds again
//	lock          Lock, TryLock: on to a lease, and into the slot
//	slot          the wait for the Unlock of a hold that is lost
//	get           how a lease is got, in steps
//	interrupt     calls that are called back when the hold in the slot is lost
//	unlock        Unlock, Do, TryDo, and how long they wait for the confirmation
//	locker        a sync.Locker
//	enderror      the error of a Do whose lock was lost
//	join          several errors as one
//	manager       the manager of a lock: whether it is closed, and its log
//	options       what options of all locks have in common
//	door          a lock as the process sees it, and the door of Multi to it
//	local         the queue of one process: what it has open
//	localacquire  an acquisition by way of it
//	localstate    its waiters and its shared contender
//	localkept     releases: handed over, kept or over
//	localreaders  readers that share a place
//	localunused   whether a Local can be forgotten
//	keep          whether a place that is kept may be used: the invariant
//	habit         whether the next place is worth keeping
//	party         several locks that are taken together
//	advance       room for the nodes of several locks
package hold
