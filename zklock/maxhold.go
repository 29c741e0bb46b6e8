package zklock

import "time"

// WithMaxHold says how long the work under the mutex should take at most. When a hold has lasted for d, the
// contexts of the hold end: those that [Mutex.Do] gives to its function, and those of [queue.Lease.Context].
// Their [context.Cause] matches [queue.ErrHeldTooLong]. The log has a warning, and the HeldTooLong hook of
// [session.Trace] is called, which package otelzk counts. Default: a hold may last for as long as it likes.
//
// The mutex stays held, and nobody else gets it, until the work ends and unlocks it: a process cannot stop a
// function that does not look at its context. So Held, Done and [queue.Lease.Err] do not change. Without a
// context, as with Lock and Unlock, the option only tells.
//
// If the function of a Do returns an error after that, the error of the Do matches queue.ErrHeldTooLong, and
// the error of the function. But it matches [context.Canceled] or [context.DeadlineExceeded] only if the
// caller's context has ended itself, since the option is not the caller's cancellation. If the function
// returns nil, it has done its work under the mutex, and Do returns nil.
//
// The time begins when the mutex is got. If an owner ([queue.WithOwner]) enters its hold again, that is the same
// hold, from the first Lock to the last Unlock. If a place is handed over or kept ([WithLocalHandover],
// [WithLazyRelease]), each hold of it counts anew. The contexts of a [MultiLock] end when the first of its
// locks has been held for too long, and the time of all of them begins when the MultiLock has got the last. The wait for
// the mutex does not count: [queue.WithMaxWait] bounds that.
//
// d must be more than 0. The time during which the system was suspended may not count.
func WithMaxHold(d time.Duration) Option {
	return option(func(c *config) error { return c.request.SetMaxHold(d) })
}
