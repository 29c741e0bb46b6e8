// Package hold keeps the holds that Lock, TryLock and Do of one lock object have taken. It decides
// which of them an Unlock gives back, since Unlock has no handle. The locks of zklock, rwlock
// and semaphore consist of a [Holds] and a [place.Lock].
package hold
