package queue

import "github.com/turnstile-go/turnstile/internal/place"

var (
	// ErrBusy is returned by TryAcquire if it would have to wait for another contender.
	ErrBusy = place.ErrBusy

	// ErrReleased is returned by a lease that was released: by Err, and by a second Release.
	ErrReleased = place.ErrReleased

	// ErrReleasePending is returned by the Release of a lease if the servers have not confirmed it before the context
	// or the session has ended. The lease has ended, and the delete of its node goes on in the background. The next
	// contender goes when the server has deleted the node. Unlock of a lock, and the end of a Do, never return it.
	ErrReleasePending = place.ErrReleasePending

	// ErrRevoked is the cause of the end of the context of a Do when another client has asked for the lock, with Revoke
	// of package zklock, with Curator's Revoker or with the command turnstile break. The lock stays held until the
	// function returns. If the function then returns an error, the error of the Do matches ErrRevoked. If the request
	// came before the lock was granted, the Do returns ErrRevoked and does not call the function. See [Lease.Revoked].
	ErrRevoked = place.ErrRevoked

	// ErrConflict is returned when a lock of another kind, or with another configuration
	// (a semaphore's limit), is in use at the same path.
	ErrConflict = place.ErrConflict

	// ErrSequence is returned when the sequence counter of the lock's directory is used up, after
	// 2³¹ contenders: 25 days at 1,000 acquisitions a second.
	//
	// Counting starts again when the directory is deleted. From the 2³⁰th contender on, the
	// client that leaves the directory empty deletes it. If a lock is contended without a pause,
	// its directory is never empty in the 12 days that remain at that rate, and the error comes
	// in the end. To avoid it, keep all clients from the lock for a moment, until the
	// directory is gone. Once a week is enough.
	//
	// After the error, the holder and the waiters keep their places, and new acquisitions fail
	// until all of them have left. Callers should wait before they try again: an attempt
	// that fails has a node in the directory for a moment too.
	ErrSequence = place.ErrSequence
)
