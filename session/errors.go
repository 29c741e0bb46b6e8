package session

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

var (
	// ErrLost is returned by everything that depended on a session once that
	// session cannot be trusted any more: the server has expired it, or it could
	// have, or (with [WithLossOnSuspend]) the connection broke.
	ErrLost = errors.New("lost")

	// ErrClosed is returned by calls on a closed [Manager] and on its sessions.
	ErrClosed = errors.New("session manager closed")

	// ErrTooManyNodes is returned by a create of an ephemeral node when the
	// session owns as many as [WithMaxNodes] allows. Nothing was sent.
	ErrTooManyNodes = errors.New("too many ephemeral nodes in one session")

	// ErrInvalid is returned, before any I/O, for a path, connect string, option
	// or argument that cannot work. The text says what is wrong with it.
	ErrInvalid = errors.New("invalid argument")
)

// lossReason says why a session ended.
type lossReason string

// Error says it to people; the error of a session wraps it.
func (r lossReason) Error() string { return string(r) }

// ErrorType says it in a word, for telemetry.
func (r lossReason) ErrorType() string {
	switch r {
	case lossExpired:
		return "session_expired"
	case lossClock:
		return "session_uncertain"
	case lossReplaced:
		return "session_replaced"
	case lossSuspend:
		return "session_suspended"
	}
	return "_OTHER"
}

const (
	lossExpired  lossReason = "expired by the server"
	lossClock    lossReason = "no answer from the leader for as long as the server needs to expire it"
	lossReplaced lossReason = "another session answered on the connection"
	lossSuspend  lossReason = "connection lost, and WithLossOnSuspend is set"
)

// refusal is why there is no session: the servers refuse an identity. It says the scheme
// alone, since what comes with that is a secret.
type refusal struct{ scheme string }

func (r *refusal) Error() string {
	return fmt.Sprintf("the server refuses the identity of scheme %q: %v", r.scheme, zk.ErrAuthFailed)
}

func (r *refusal) Unwrap() error { return zk.ErrAuthFailed }

func lossError(id int64, why error) error {
	return fmt.Errorf("session 0x%x: %w: %w", uint64(id), ErrLost, why)
}

func closedError(id int64) error {
	return fmt.Errorf("session 0x%x: %w", uint64(id), ErrClosed)
}

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
