package rwlock

// Option changes an [RWMutex]. [New] returns an error that matches [session.ErrInvalid] for an option
// that is nil or has a bad value.
type Option interface{ apply(*RWMutex) error }

type option func(*RWMutex) error

func (o option) apply(rw *RWMutex) error { return o(rw) }
