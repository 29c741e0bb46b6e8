package semaphore

// WithAsyncRelease makes Unlock return once the release is on its way to the servers. Default: Unlock waits
// for the servers' answer, for a second at most. The option holds for the end of Do and TryDo too. That
// Unlock has returned then does not mean that others can have the lease, and Unlock returns only
// [ErrNotHeld], or why the lease was lost. The release is certain when [session.Manager.Close] has returned
// nil. WithAsyncRelease of package zklock has the details, which are the same here.
func WithAsyncRelease() Option {
	return option(func(s *Semaphore) error {
		s.lease.Async, s.holds.Async = true, true
		return nil
	})
}
