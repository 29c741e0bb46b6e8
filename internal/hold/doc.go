// Package hold keeps the holds of one lock object: who holds the lock through its Lock, TryLock
// and Do, and which hold an Unlock, which has no handle, gives back. The locks of zklock, rwlock
// and semaphore consist of a [Holds] and a kind of queue.
package hold
