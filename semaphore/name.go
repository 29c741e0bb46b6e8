package semaphore

// WithName sets a name for the semaphore in metrics and spans, such as "exports". In Curator's layout, the
// lock that guards the entry has it too. It is otherwise WithName of package zklock. A name is text that can
// be printed, of 1 to 200 bytes. Default: none.
func WithName(text string) Option {
	return option(func(s *Semaphore) error { return s.lease.Request.SetName(text) })
}
