package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/wire"
)

var (
	// ErrLost is returned by everything that depends on a session, once the session cannot be trusted any more. Either the
	// server has expired it, or the server could have expired it by now, or (with [WithLossOnSuspend]) the connection broke.
	ErrLost = errors.New("lost")
	// ErrClosed is returned by calls on a closed [Manager] and on its sessions.
	ErrClosed = errors.New("session manager closed")
	// ErrUncertain is matched by the error of a Create, Set, Delete or Multi that was sent, or may have been, and was not
	// answered: the connection or the session was lost, the manager was closed, or ctx has ended. The error also matches
	// the reason. The servers may have carried the request out, or may do so in a moment. Its caller knows what that
	// means: it reads what the request should have changed, or sends it again if that does no harm. If the error of one of
	// these calls does not match ErrUncertain, the request has changed nothing.
	ErrUncertain = errors.New("nobody knows whether the servers have carried it out")
	// ErrTooManyNodes is returned by [Session.Enter], and so by a lock, if the session has no room for the node: it owns as
	// many nodes, or nodes with paths as long, as [WithNodeLimits] allows. The text says which. Nodes that are being created
	// count, and so do nodes whose create was not answered. Nodes whose delete has left do not count as long as the
	// connection lasts. Nothing was sent.
	ErrTooManyNodes = errors.New("too many nodes")
	// ErrTooLong is returned by a read whose answer has more than 64 MiB, and by [Session.Enter] if the request is probably
	// longer than the servers take (jute.maxbuffer): three connections in a row were lost with it. Requests that are sent once
	// match [ErrUncertain] then, and the text says so.
	ErrTooLong = wire.ErrTooLong
	// ErrUnimplemented is returned if the server does not implement a request. Servers do not create nodes with a TTL unless
	// that is enabled on them (extendedTypesEnabled). Many servers close the connection after they have said so.
	ErrUnimplemented = errors.New("the server does not implement this request")
	// ErrSequence is returned by [Session.Enter] when the sequence counter of the directory is used up, after 2³¹ nodes.
	// Counting starts again when the directory is deleted. Enter does so when it leaves it empty.
	ErrSequence = errors.New("sequence counter of the directory is used up")
	// ErrInvalid is returned, before any I/O, for a path, connect string, option or argument that cannot work. It is also
	// returned for as long as the servers grant a session timeout that is too short for locks: see [WithMargin].
	ErrInvalid = misuse.ErrInvalid
)

// lossReason is why a session ended.
type lossReason string

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

// stoodStill is why a session ended whose process did not run for so long: it was stopped, or its machine was, or was busy.
type stoodStill time.Duration

func (d stoodStill) Error() string {
	return fmt.Sprintf("this process stood still for %v, so the servers may have expired it", time.Duration(d).Round(time.Millisecond))
}

// ErrorType is the value of error.type for telemetry.
func (stoodStill) ErrorType() string { return lossClock.ErrorType() }

// endError is the error of a session that was lost.
type endError struct {
	id  int64
	why error
}

func (e *endError) Error() string {
	return fmt.Sprintf("session %s: %v: %v", hex(e.id), ErrLost, e.why)
}
func (e *endError) Unwrap() []error { return []error{ErrLost, e.why} }

// reasonOf returns why a session was lost, for texts that name the session already.
func reasonOf(err error) error {
	var end *endError
	if errors.As(err, &end) {
		return end.why
	}
	return err
}

// hex returns a session id as the servers log it.
func hex(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

// refusal is the error when the servers refuse an identity. It has the scheme only, because the credential is a secret.
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

// shortLease is the error for a timeout with which a session that owns a node would be lost on healthy servers.
type shortLease struct{ timeout, margin, half time.Duration }

func (e *shortLease) Error() string {
	return fmt.Sprintf("a session timeout of %v less a margin of %v is a lease of %v, and heartbeats need one of %v with "+
		"ticks of %v: a session that owns a node would be lost on healthy servers",
		e.timeout, e.margin, e.timeout-e.margin, clock.Needed(e.timeout, e.half), 2*e.half)
}

func (e *shortLease) Unwrap() error { return ErrInvalid }
