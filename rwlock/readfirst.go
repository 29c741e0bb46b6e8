package rwlock

// WithReadFirst makes tries of both sides look before they write: TryLock, TryRLock, TryAcquire and the others. It is
// zklock.WithReadFirst, with the same limits. A busy try costs the servers a read in place of two writes, and takes one
// round trip in place of two. A try that gets the lock takes one round trip more. For TryRLock, only writers are in the way.
//
// The answer busy may be out of date, as zklock.WithReadFirst says. Places that processes may only keep ([WithLazyRelease]) leave
// only when they see a new node, so if there may be nothing else in the way, a try creates one. Default: a try creates a
// node, and removes it if it has to wait.
func WithReadFirst() Option {
	return option(func(rw *RWMutex) error {
		rw.request.OwnTerms().ReadFirst = true
		return nil
	})
}

// WithMaxWaiters makes [RWMutex.Lock], [RWMutex.RLock] and the other calls that wait return [queue.ErrBusy] at once if more
// than n contenders are in their way when they enter the queue. It is zklock.WithMaxWaiters, with the same limits. Holders
// count. For a writer all contenders ahead of it are in the way, so n counts the readers that hold, too. For a reader only
// writers are. An RLock of an owner that holds the lock waits for nobody, and is never refused. n must be 0 or more.
// Default: a queue can be of any length.
func WithMaxWaiters(n int) Option {
	return option(func(rw *RWMutex) error { return rw.request.SetMaxWaiters(n) })
}
