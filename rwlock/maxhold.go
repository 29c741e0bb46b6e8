package rwlock

import "time"

// WithMaxHold says how long the work under the read lock or the write lock should take at most. When a hold
// has lasted for d, its contexts end: those of Do, and those of [queue.Lease.Context]. Their
// [context.Cause] matches [queue.ErrHeldTooLong]. The log and the HeldTooLong hook of [session.Trace] tell.
// The lock stays held until the work ends and unlocks it. Default: a hold may last for as long as it likes.
//
// The read lock of an owner that holds the write lock is a hold of its own. Otherwise WithMaxHold of package
// zklock has the details, which are the same here. d must be more than 0.
func WithMaxHold(d time.Duration) Option {
	return option(func(rw *RWMutex) error { return rw.request.SetMaxHold(d) })
}
