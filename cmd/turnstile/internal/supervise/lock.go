package supervise

import "time"

// Lock is the lock under which a command runs.
type Lock interface {
	// Err returns nil while the lock is held, and then why it is not. It goes by the clock.
	Err() error
	// Deleted reports, after Err has returned an error, whether the session lives on.
	Deleted() bool
	// Remaining returns how long the lock is certain if no server answers from now on.
	Remaining() time.Duration
	// Timeout returns the session timeout. It changes if a server grants less when the session is connected again.
	Timeout() time.Duration
	// Done is closed when the lock is lost, or a little later.
	Done() <-chan struct{}
}

// fateOf returns what has become of a lock, how long it is certain, and the session timeout by which that
// is so.
func fateOf(l Lock) (f fate, remaining, timeout time.Duration, err error) {
	remaining, timeout = remainingOf(l)
	switch err := l.Err(); {
	case err == nil:
		return held, remaining, timeout, nil
	case l.Deleted():
		return deleted, 0, timeout, err
	default:
		return expired, 0, timeout, err
	}
}

// remainingOf returns how long a lock is certain, and the session timeout by which that is so.
func remainingOf(l Lock) (remaining, timeout time.Duration) {
	timeout = l.Timeout()
	for {
		remaining = l.Remaining()
		now := l.Timeout()
		if now == timeout {
			return remaining, timeout
		}
		timeout = now
	}
}
