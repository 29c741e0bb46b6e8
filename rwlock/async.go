package rwlock

// WithAsyncRelease makes Unlock and RUnlock return once the release is on its way to the servers. Default: they wait
// for the servers' answer, for a second at most. The option holds for the ends of Do and TryDo, also of a [Reader], and
// for the Unlock of a Locker too. That Unlock has returned then does not mean that others can lock, and Unlock returns
// only [ErrNotHeld], or why the lock was lost. The release is certain when [session.Manager.Close] has returned nil.
// WithAsyncRelease of package zklock has the details, which are the same here.
func WithAsyncRelease() Option {
	return option(func(rw *RWMutex) error {
		rw.writer.Async, rw.reader.Async = true, true
		rw.writes.Async, rw.reads.Async = true, true
		return nil
	})
}
