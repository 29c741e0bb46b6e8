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
	// ErrBusy is returned by a try that would have to wait for another contender.
	ErrBusy = errors.New("lock is busy")

	// ErrReleased is returned by a lease that was released.
	ErrReleased = errors.New("lease released")

	// ErrReleasePending is returned by the Release of a lease, and never by an Unlock, if ctx or the session has
	// ended before the servers have confirmed it. The node will go all the same.
	ErrReleasePending = errors.New("release not yet confirmed")

	// ErrRevoked is the cause of the end of the context of a Do when another client has asked for the lock: see
	// [Lease.Revoked]. The lock stays held until the function returns, and an error of the function then matches
	// ErrRevoked. If the request came before the grant, the Do returns ErrRevoked and does not call the function.
	ErrRevoked = errors.New("another client has asked for the lock")

	// ErrConflict is returned when a lock of another kind, or with another limit, is in use at the same path.
	ErrConflict = errors.New("another kind of lock, or another configuration, at this path")

	// ErrSequence is returned when the sequence numbers of the lock's directory are used up, after 2³¹ contenders: 25
	// days at 1,000 a second. From the 2³⁰th on, a client that leaves the directory empty deletes it, and counting
	// starts again. If a lock is never without contenders, keep all clients from it once a week. After the error,
	// wait until all have left.
	ErrSequence = session.ErrSequence

	// ErrMaxWait ends a wait that [WithMaxWait] bounds.
	ErrMaxWait = errors.New("waited for as long as allowed")

	errDeleted error = deletedError{}

	// errCut is for hooks: a function of the user has panicked, or ended the goroutine.
	errCut = errors.New("cut short by a panic, or by the end of the goroutine")
)

type deletedError struct{}

func (deletedError) Error() string { return "its node was deleted" }

// ErrorType is for telemetry.
func (deletedError) ErrorType() string { return "node_deleted" }

// OpError says which operation failed on which lock, and why. The first that [errors.As] finds is the one that the
// program has called.
type OpError struct {
	Op   string // such as "acquire", "unlock" or "resize"; "lock" for the loss of a lock
	Path string // of the lock; of several locks, with ", " between them
	Err  error

	since time.Time // of a loss
}

// Error returns the operation, the path and the reason. After a loss, that of an Unlock also says since when.
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

// WaitError says why a call gave up waiting.
type WaitError struct {
	// Err is the error of the context, or [ErrMaxWait].
	Err error
	// Reason says for people what was in the way, or is "".
	Reason string
	// Ahead is the contender that Reason names: the holder if that is known (Holder is true then), or else the
	// nearest one ahead. It has what the node's name says until the servers have told more.
	Ahead Contender
	// Connection says why there is no connection, or which server has not answered. It may be nil.
	Connection error
}

// Error returns Err and Reason.
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

func conflictOf(k *Kind, n Node) error {
	return fmt.Errorf("%w: %s lock finds %s", ErrConflict, called(k), contends[n.Prefix])
}

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

// isLoss reports whether another node can go on, perhaps in another session.
func isLoss(err error) bool { return errors.Is(err, session.ErrLost) || errors.Is(err, errDeleted) }

func errQueue(err error) error { return fmt.Errorf("queue: %w", err) }
