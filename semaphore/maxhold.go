package semaphore

import "time"

// WithMaxHold says how long the work under a lease should take at most. When a hold has lasted for d, its
// contexts end: those of [Semaphore.Do], and those of [queue.Lease.Context]. Their [context.Cause] matches
// [queue.ErrHeldTooLong]. The log and the HeldTooLong hook of [session.Trace] tell. The lease stays held
// until the work ends and gives it back. Default: a hold may last for as long as it likes.
//
// WithMaxHold of package zklock has the details, which are the same here. d must be more than 0.
func WithMaxHold(d time.Duration) Option {
	return option(func(s *Semaphore) error { return s.lease.Request.SetMaxHold(d) })
}
