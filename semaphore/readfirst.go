package semaphore

// WithReadFirst makes a try look before it writes: [Semaphore.TryLock], [Semaphore.TryAcquireN] and the others. It is
// zklock.WithReadFirst, with the same limits. A busy try costs the servers a read in place of two writes, and takes one
// round trip in place of two. A try that gets its leases takes one round trip more. The limit that counts is the one in force,
// after a [Semaphore.Resize] as well, and n leases are busy if they do not fit beside those of all contenders ahead.
//
// The answer busy may be out of date, as zklock.WithReadFirst says. The option cannot be combined with [WithCuratorLayout],
// where a try takes two places. Default: a try creates a node, and removes it if it has to wait.
func WithReadFirst() Option {
	return option(func(s *Semaphore) error {
		s.lease.Request.OwnTerms().ReadFirst = true
		return nil
	})
}

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
