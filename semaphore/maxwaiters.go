package semaphore

// WithMaxWaiters makes [Semaphore.Lock], [Semaphore.AcquireN] and the other calls that wait return [queue.ErrBusy] at once if
// they would have to wait and more than n contenders are ahead when they enter the queue. It is zklock.WithMaxWaiters, with the
// same limits. Holders count: of a semaphore of 10 leases, each held by a call of its own, n = 14 lets five others wait. A call
// that need not wait is never refused. The renewal of a place after a [Semaphore.Resize] is no entry.
//
// n must be 0 or more. The option cannot be combined with [WithCuratorLayout], where a contender waits in two directories.
// Default: a queue can be of any length.
func WithMaxWaiters(n int) Option {
	return option(func(s *Semaphore) error { return s.lease.Request.SetMaxWaiters(n) })
}
