package rwlock

// WithName sets a name for the lock in metrics and spans, such as "prices", of readers and of writers. It is
// otherwise WithName of package zklock. A name is text that can be printed, of 1 to 200 bytes. Default: none.
func WithName(text string) Option {
	return option(func(rw *RWMutex) error { return rw.request.SetName(text) })
}
