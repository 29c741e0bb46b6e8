package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/wire"
)

var (
	// ErrLost is returned by everything that depends on a session, once the session cannot be trusted any more: a
	// server has expired it, or could have expired it by now, or (with [WithLossOnSuspend]) the connection broke.
	ErrLost = errors.New("lost")
	// ErrClosed is returned by calls on a closed [Manager] and on its sessions.
	ErrClosed = errors.New("session manager closed")
	// ErrUncertain is matched by the error of a Create, Set, Delete or Multi that was sent, or may have been, and was
	// not answered. The error also matches the reason: a lost connection or session, a closed manager, the end of ctx.
	// The servers may have carried the request out, or may do so in a moment: read what it should have changed, or send
	// it again if that does no harm. If an error of these calls does not match, the request has changed nothing.
	ErrUncertain = errors.New("nobody knows whether the servers have carried it out")
	// ErrTooManyNodes is returned by [Session.Enter], and so by a lock, if the session has no room for the node: see
	// [WithNodeLimits]. A create in flight or in doubt counts, and a delete in flight makes room. Nothing was sent.
	ErrTooManyNodes = errors.New("too many nodes")
	// ErrTooLong is returned by a read whose answer has more than 64 MiB, and by [Session.Enter] if the request is
	// probably longer than the servers take (jute.maxbuffer): three connections in a row were lost with it. Requests
	// that are sent once match [ErrUncertain] then, and the text says so.
	ErrTooLong = wire.ErrTooLong
	// ErrUnimplemented is returned if the server does not implement a request, such as a create with a TTL unless that
	// is enabled (extendedTypesEnabled). Many servers close the connection after they have said so.
	ErrUnimplemented = errors.New("the server does not implement this request")
	// ErrSequence is returned by [Session.Enter] when the sequence counter of the directory is used up, after 2³¹
	// nodes. Counting starts again when the directory is deleted. Enter does so when it leaves it empty.
	ErrSequence = errors.New("sequence counter of the directory is used up")
	// ErrInvalid is returned, before any I/O, for a path, connect string, option or argument that cannot work. It is
	// also returned for as long as the servers grant a session timeout that is too short for locks: see [WithMargin].
	ErrInvalid = misuse.ErrInvalid
)

// lossReason is why a session ended: a text, and the value of error.type for telemetry.
type lossReason struct{ text, kind string }

func (r lossReason) Error() string     { return r.text }
func (r lossReason) ErrorType() string { return r.kind }

var (
	lossExpired  = lossReason{"expired by the server", "session_expired"}
	lossClock    = lossReason{"no answer through the leader for so long that the servers may have expired it", "session_uncertain"}
	lossReplaced = lossReason{"another session answered on the connection", "session_replaced"}
	lossSuspend  = lossReason{"connection lost, and WithLossOnSuspend is set", "session_suspended"}
)

// stoodStill returns why a session ended whose process did not run for so long: it or its machine was stopped, or was
// busy.
func stoodStill(d time.Duration) lossReason {
	text := fmt.Sprintf("this process stood still for %v, so the servers may have expired it", d.Round(time.Millisecond))
	return lossReason{text, lossClock.kind}
}

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

// codes are the errors for codes of servers that callers can match.
var codes = map[int32]error{
	codec.CodeAPIError:               zk.ErrAPIError,
	codec.CodeUnimplemented:          ErrUnimplemented,
	codec.CodeNoNode:                 zk.ErrNoNode,
	codec.CodeNoAuth:                 zk.ErrNoAuth,
	codec.CodeBadVersion:             zk.ErrBadVersion,
	codec.CodeNoChildrenForEphemeral: zk.ErrNoChildrenForEphemerals,
	codec.CodeNodeExists:             zk.ErrNodeExists,
	codec.CodeNotEmpty:               zk.ErrNotEmpty,
	codec.CodeSessionExpired:         zk.ErrSessionExpired,
	codec.CodeInvalidACL:             zk.ErrInvalidACL,
	codec.CodeAuthFailed:             zk.ErrAuthFailed,
	codec.CodeSessionMoved:           zk.ErrSessionMoved,
	codec.CodeReconfigDisabled:       zk.ErrReconfigDisabled,
	codec.CodeBadArguments:           zk.ErrBadArguments,
}

// codeError is any other code.
type codeError int32

func (e codeError) Error() string {
	if name := codeNames[e]; name != "" {
		return fmt.Sprintf("server error %d, %s", int32(e), name)
	}
	return fmt.Sprintf("unknown error: %d", int32(e)) // the text of go-zookeeper
}

// codeNames are the other codes of KeeperException.Code in ZooKeeper 3.5 to 3.9.
var codeNames = map[codeError]string{
	codec.CodeSystemError:          "SystemError: the server has failed",
	codec.CodeRuntimeInconsistency: "RuntimeInconsistency: another operation of the transaction was refused",
	codec.CodeDataInconsistency:    "DataInconsistency: the server found its data to be inconsistent",
	codec.CodeConnectionLoss:       "ConnectionLoss: the server has lost a connection of its own",
	codec.CodeMarshallingError:     "MarshallingError: the server could not decode the request",
	codec.CodeOperationTimeout:     "OperationTimeout: the servers took too long",
	codec.CodeUnknownSession:       "UnknownSession: the server does not know the session",
	codec.CodeNewConfigNoQuorum:    "NewConfigNoQuorum: no quorum of the new configuration is in touch with the leader",
	codec.CodeReconfigInProgress:   "ReconfigInProgress: another reconfiguration is under way",
	codec.CodeInvalidCallback:      "InvalidCallback: the callback is invalid",
	codec.CodeNotReadOnly:          "NotReadOnly: the server is read-only, because it has no quorum",
	codec.CodeEphemeralOnLocalSession: "EphemeralOnLocalSession: a local session cannot own ephemeral nodes; " +
		"set localSessionsUpgradingEnabled on every server, or do without localSessionsEnabled",
	codec.CodeNoWatcher:      "NoWatcher: there is no such watch",
	codec.CodeRequestTimeout: "RequestTimeout: the servers took too long",
	codec.CodeSessionClosedRequireSASLAuth: "SessionClosedRequireSaslAuth: the server wants clients to identify themselves " +
		"by SASL",
	codec.CodeQuotaExceeded: "QuotaExceeded: the quota of a directory on the path is used up",
	codec.CodeThrottled:     "ThrottledOp: the server has too much to do",
}

// ErrorCode returns the number, for telemetry.
func (e codeError) ErrorCode() int32 { return int32(e) }

func errorOf(code int32) error {
	if err := codes[code]; err != nil {
		return err
	}
	return codeError(code)
}

// errNotSent is the error for a request that was not sent. Then it may be sent again, whatever it does.
var errNotSent = errors.New("not sent")

// outcome is what the end of a request means for it.
type outcome int

const (
	answered outcome = iota // the server has answered: final
	unsent                  // it was not sent, or the server did not carry it out and may later
	inDoubt                 // nobody knows whether the server carried it out
	expired                 // the session has ended
)

// outcomeOf returns what an error of a request means.
func outcomeOf(err error) outcome {
	var code codeError
	errors.As(err, &code)
	switch {
	case code == codec.CodeThrottled, errors.Is(err, zk.ErrSessionMoved), errors.Is(err, errNotSent):
		return unsent
	case errors.Is(err, zk.ErrSessionExpired):
		return expired
	case code == codec.CodeConnectionLoss, code == codec.CodeOperationTimeout, errors.Is(err, zk.ErrConnectionClosed):
		return inDoubt
	}
	return answered
}

func ignoreNoNode(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}
