package core

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/outbox"
	"github.com/turnstile-go/turnstile/internal/room"
)

// The errors of package session, which says what they mean.
var (
	ErrLost          = errors.New("lost")
	ErrClosed        = errors.New("session manager closed")
	ErrUncertain     = errors.New("nobody knows whether the servers have carried it out")
	ErrTooManyNodes  = room.ErrTooManyNodes
	ErrTooLong       = outbox.ErrTooLong
	ErrUnimplemented = errors.New("the server does not implement this request")
	ErrInvalid       = misuse.ErrInvalid
	ErrSequence      = errors.New("sequence counter of the directory is used up")
)

// lossReason is why a session ended.
type lossReason string

// Error is the text for people. The error of a session wraps it.
func (r lossReason) Error() string { return string(r) }

// ErrorType is the value of error.type for telemetry.
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
	lossClock    lossReason = "no answer through the leader for so long that the servers may have expired it"
	lossReplaced lossReason = "another session answered on the connection"
	lossSuspend  lossReason = "connection lost, and WithLossOnSuspend is set"
)

// refusal is the error when the servers refuse an identity. It has the scheme only, because the
// credential is a secret.
type refusal struct {
	scheme string
	why    error // of SASL, which can fail on either side
}

func (r *refusal) Error() string {
	if r.why != nil {
		return fmt.Sprintf("%v: %v", r.why, zk.ErrAuthFailed)
	}
	return fmt.Sprintf("the server refuses the identity of scheme %q: %v", r.scheme, zk.ErrAuthFailed)
}

func (r *refusal) Unwrap() error { return zk.ErrAuthFailed }

// endError is the error of a session that was lost.
type endError struct {
	id  int64
	why error
}

func (e *endError) Error() string {
	return fmt.Sprintf("session %s: %v: %v", sessionID(e.id), ErrLost, e.why)
}

func (e *endError) Unwrap() []error { return []error{ErrLost, e.why} }

func lossError(id int64, why error) error { return &endError{id, why} }

// reasonOf returns why a session was lost, for texts that name the session already.
func reasonOf(err error) error {
	var end *endError
	if errors.As(err, &end) {
		return end.why
	}
	return err
}

func closedError(id int64) error {
	return fmt.Errorf("session %s: %w", sessionID(id), ErrClosed)
}

// sessionID returns a session id as the servers log it.
func sessionID(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

// errSilence is the reason for cutting a connection on which an answer is due.
func errSilence(d time.Duration) error {
	return fmt.Errorf("no answer for %v, so this side cut the connection", d.Round(time.Millisecond))
}

// errLongAnswer is the reason for cutting a connection on which one answer takes too long.
func errLongAnswer(d time.Duration) error {
	return fmt.Errorf("one answer has taken %v, so this side cut the connection to save the session",
		d.Round(time.Millisecond))
}

// shortLease is the error for a session timeout with which a session that owns a node would be lost on
// healthy servers.
type shortLease struct{ timeout, margin, half time.Duration }

func (e *shortLease) Error() string {
	return fmt.Sprintf("a session timeout of %v less a margin of %v is a lease of %v, and heartbeats need one of %v with "+
		"ticks of %v: a session that owns a node would be lost on healthy servers",
		e.timeout, e.margin, e.timeout-e.margin, clock.Needed(e.timeout, e.half), 2*e.half)
}

func (e *shortLease) Unwrap() error { return ErrInvalid }
