package place

import (
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/kinds"
)

// The errors of package queue, which says what they mean.
var (
	ErrBusy           = errors.New("lock is busy")
	ErrReleased       = errors.New("lease released")
	ErrReleasePending = errors.New("release not yet confirmed")
	ErrRevoked        = errors.New("another client has asked for the lock")
	ErrConflict       = errors.New("another kind of lock, or another configuration, at this path")
	ErrSequence       = core.ErrSequence
)

var (
	// errDeleted is the cause of a loss: the node was deleted, and not by its session.
	errDeleted error = deletedError{}

	// ErrCut says that a function of the user, such as a policy, has panicked, or has ended the goroutine
	// with runtime.Goexit.
	ErrCut = errors.New("cut short by a panic, or by the end of the goroutine")
)

type deletedError struct{}

func (deletedError) Error() string { return "its node was deleted" }

// ErrorType is for telemetry.
func (deletedError) ErrorType() string { return "node_deleted" }

// Failed returns err as the failure of an operation on a lock.
func Failed(op, path string, err error) error { return &kinds.OpError{Op: op, Path: path, Err: err} }

// Called returns the kind's name with its article.
func Called(k *kinds.Kind) string {
	if k.Name != "" && strings.Contains("aeiou", k.Name[:1]) {
		return "an " + k.Name
	}
	return "a " + k.Name
}

// errMoved says that something has changed while somebody looked.
var errMoved = errors.New("the queue has moved on")

// isPassing reports whether it helps to look again.
func isPassing(err error) bool {
	return errors.Is(err, core.ErrLost) || errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, errMoved)
}
