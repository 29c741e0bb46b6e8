package kinds

// OpError says which operation failed on which lock, and why. [errors.As] finds it in the errors of locks, queues and
// leases. The first that it finds is the operation that the program has called.
type OpError struct {
	Op   string // the operation, such as "acquire", "unlock" or "resize"; "lock" for the loss of a lock
	Path string // of the lock; those of several locks have ", " between them
	Err  error  // why
}

// Error returns the operation, the path and the reason. If the reason is that a part of the operation failed on the
// same lock, the text says why that failed.
func (e *OpError) Error() string {
	why := e.Err
	for {
		part, ok := why.(*OpError) //nolint:errorlint // not what it wraps
		if !ok || part.Path != e.Path {
			return e.Op + " " + e.Path + ": " + why.Error()
		}
		why = part.Err
	}
}

// Unwrap returns Err.
func (e *OpError) Unwrap() error { return e.Err }
