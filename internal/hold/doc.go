// Package hold is what a lock object knows of those who came in through its Lock: whose
// each hold is, and what an Unlock, which has no handle, gives back. The locks of zklock,
// rwlock and semaphore are made of it and of a kind of queue.
package hold
