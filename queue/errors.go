package queue

import "errors"

var (
	// ErrBusy is returned by TryAcquire when it would have to wait.
	ErrBusy = errors.New("lock is busy")

	// ErrReleased is returned by a lease that has been released: by Err, and by a
	// second Release.
	ErrReleased = errors.New("lease released")

	// ErrReleasePending is returned by a release that is certain but not yet
	// confirmed: the holder has given the lock up, the delete of its node goes on in
	// the background, and others enter when the server has heard of it.
	ErrReleasePending = errors.New("release not yet confirmed")

	// ErrConflict is returned when a lock of another kind, or with another configuration
	// (a semaphore's limit), is in use at the same path.
	ErrConflict = errors.New("another kind of lock, or another configuration, at this path")

	// ErrSequence is returned when the sequence counter of the lock's directory is
	// used up, after 2³¹ contenders: 25 days at 1,000 acquisitions a second. Counting
	// starts again when the directory is removed. From the 2³⁰th contender on, the client
	// that leaves the directory empty removes it. A lock that is contended without pause
	// never leaves its directory empty in the 12 days that remain at that rate, and comes
	// to ErrSequence in the end. To avoid that, keep all clients from the lock for a
	// moment, until its directory is gone: once a week is enough. Once the error has come,
	// the holder and the waiters keep their places, and every new acquisition fails until
	// they have left. Callers should wait before they try again, since an attempt that fails
	// is in the directory for a moment too.
	ErrSequence = errors.New("sequence counter of the lock's directory is used up")

	// errDeleted is the cause of a loss: somebody deleted the node.
	errDeleted error = deletedError{}

	// errEnded says that a hook has ended a goroutine of ours, by runtime.Goexit, or that
	// one of the caller's panicked.
	errEnded = errors.New("a hook ended the goroutine that called it")

	// errReconfigured says that the directory's data is not what was decided by.
	errReconfigured = errors.New("configuration changed")
)

type deletedError struct{}

func (deletedError) Error() string { return "its node was deleted" }

// ErrorType says it in a word, for telemetry.
func (deletedError) ErrorType() string { return "node_deleted" }
