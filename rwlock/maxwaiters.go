package rwlock

// WithMaxWaiters makes [RWMutex.Lock], [RWMutex.RLock] and the other calls that wait return [queue.ErrBusy] at once if more
// than n contenders are in their way when they enter the queue. It is zklock.WithMaxWaiters, with the same limits. Holders
// count. For a writer all contenders ahead of it are in the way, so n counts the readers that hold, too. For a reader only
// writers are. An RLock of an owner that holds the lock waits for nobody, and is never refused. n must be 0 or more.
// Default: a queue can be of any length.
func WithMaxWaiters(n int) Option {
	return option(func(rw *RWMutex) error { return rw.request.SetMaxWaiters(n) })
}
