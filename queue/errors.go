package queue

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
)

var (
	// ErrBusy is returned by TryAcquire if it would have to wait for another contender.
	ErrBusy = errors.New("lock is busy")

	// ErrReleased is returned by a lease that was released: by Err, and by a second Release.
	ErrReleased = errors.New("lease released")

	// ErrReleasePending is returned by the Release of a lease if the servers have not confirmed it before the context
	// or the session has ended. The delete of the node goes on. Unlock of a lock, and the end of a Do, never return it.
	ErrReleasePending = errors.New("release not yet confirmed")

	// ErrRevoked is the cause of the end of the context of a Do when another client has asked for the lock: see
	// [Lease.Revoked]. The lock stays held until the function returns. If that returns an error, the error of the Do
	// matches ErrRevoked. If the request came before the grant, the Do returns ErrRevoked and does not call the
	// function.
	ErrRevoked = errors.New("another client has asked for the lock")

	// ErrConflict is returned when a lock of another kind, or with another limit, is in use at the same path.
	ErrConflict = errors.New("another kind of lock, or another configuration, at this path")

	// ErrSequence is returned when the sequence counter of the lock's directory is used up, after 2³¹ contenders: 25
	// days at 1,000 acquisitions a second. Counting starts again when the directory is deleted. From the 2³⁰th
	// contender on, the client that leaves it empty deletes it. If a lock is contended without a pause, keep all
	// clients from it once a week until the directory is gone. After the error, wait until the holder and all waiters
	// have left: each attempt makes a node too.
	ErrSequence = session.ErrSequence

	// ErrMaxWait ends a wait that has lasted for as long as its caller allows: see [WithMaxWait].
	ErrMaxWait = errors.New("waited for as long as allowed")

	// errDeleted is the cause of a loss: the node was deleted, and not by its session.
	errDeleted error = deletedError{}

	// errCut says that a function of the user has panicked, or has ended the goroutine with runtime.Goexit.
	errCut = errors.New("cut short by a panic, or by the end of the goroutine")
)

type deletedError struct{}

func (deletedError) Error() string { return "its node was deleted" }

// ErrorType is for telemetry.
func (deletedError) ErrorType() string { return "node_deleted" }

// OpError says which operation failed on which lock, and why. The first that [errors.As] finds is the operation that
// the program has called.
type OpError struct {
	Op   string // the operation, such as "acquire", "unlock" or "resize"; "lock" for the loss of a lock
	Path string // of the lock; those of several locks have ", " between them
	Err  error  // why

	since time.Time // of a loss, when this process noticed it; otherwise zero
}

// Error returns the operation, the path and the reason. Of parts that failed on the same lock it gives the reason alone.
// If a lock was lost before it was unlocked, the text says since when.
func (e *OpError) Error() string {
	why := e.Err
	for {
		part, ok := why.(*OpError) //nolint:errorlint // not what it wraps
		if !ok || part.Path != e.Path {
			break
		}
		why = part.Err
	}
	text := e.Op + " " + e.Path + ": " + why.Error()
	if since := lostSince(e.Err); e.Op == "unlock" && !since.IsZero() {
		text += ", since " + since.UTC().Format(time.RFC3339)
	}
	return text
}

// lostSince returns when the loss in an error was noticed, or the zero time.
func lostSince(err error) time.Time {
	var op *OpError
	for errors.As(err, &op) {
		if !op.since.IsZero() {
			return op.since
		}
		err = op.Err
	}
	return time.Time{}
}

// Unwrap returns Err.
func (e *OpError) Unwrap() error { return e.Err }

func failed(op, path string, err error) error { return &OpError{Op: op, Path: path, Err: err} }

// WaitError says why a call gave up waiting for a lock, and what was in its way.
type WaitError struct {
	// Err is what ended the wait: the error of the call's context, or [ErrMaxWait].
	Err error
	// Reason says for people what was in the way, or "" if that is not known.
	Reason string
	// Ahead is the contender that Reason names: the holder if that is known (its Holder is true then), or else the
	// nearest one ahead. Without one its Path is "". It has a Path alone if the servers have not told yet who it is.
	Ahead Contender
	// Connection says why there is no connection, or which server has not answered for how long. It is nil if all is
	// well.
	Connection error
}

// Error returns what ended the wait, with the reason.
func (e *WaitError) Error() string {
	if e.Reason == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + " (" + e.Reason + ")"
}

// Unwrap returns Err.
func (e *WaitError) Unwrap() error { return e.Err }

func called(k *Kind) string {
	if k.Name != "" && strings.Contains("aeiou", k.Name[:1]) {
		return "an " + k.Name
	}
	return "a " + k.Name
}

// conflictOf returns the error of a kind that finds a contender of another one.
func conflictOf(k *Kind, n Node) error {
	return fmt.Errorf("%w: %s lock finds %s", ErrConflict, called(k), contends[n.Prefix])
}

// contends says what a node of another kind of lock belongs to.
var contends = map[string]string{
	PrefixLock:      "a contender for a mutex or an election",
	PrefixLatch:     "a candidate of Curator's LeaderLatch",
	PrefixRead:      "a reader of a read-write lock",
	PrefixWrite:     "a writer of a read-write lock",
	PrefixLease:     "a lease of a semaphore",
	prefixUnfair:    "a mutex without a queue, of a state before 0.1.0",
	PrefixKazooLock: "a contender for kazoo's Lock or WriteLock",
	PrefixKazooRead: "a contender for kazoo's ReadLock",
}

func isNoNode(err error) bool { return errors.Is(err, zk.ErrNoNode) }

func ignoreNoNode(err error) error {
	if isNoNode(err) {
		return nil
	}
	return err
}

// isLoss reports whether another node, perhaps in another session, can go on.
func isLoss(err error) bool { return errors.Is(err, session.ErrLost) || errors.Is(err, errDeleted) }

func errQueue(err error) error { return fmt.Errorf("queue: %w", err) }
