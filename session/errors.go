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
	// ErrLost is returned by everything that depends on a session which a server has expired, or could have expired
	// by now, or (with [WithLossOnSuspend]) whose connection broke.
	ErrLost = errors.New("lost")
	// ErrClosed is returned by calls on a closed [Manager] and on its sessions.
	ErrClosed = errors.New("session manager closed")
	// ErrUncertain is matched by the error of a Create, Set, Delete or Multi that may have been sent, and was not
	// answered. The servers may have carried it out, or may do so in a moment: read what it should have changed, or
	// send it again if that does no harm. If an error does not match, nothing was changed.
	ErrUncertain = errors.New("nobody knows whether the servers have carried it out")
	// ErrTooManyNodes is returned by [Session.Enter], and so by a lock, beyond [WithNodeLimits]. Nothing was sent.
	ErrTooManyNodes = errors.New("too many nodes")
	// ErrTooLong is returned by a read whose answer has more than 64 MiB, and by [Session.Enter] after three
	// connections in a row were lost with a request that is probably longer than jute.maxbuffer.
	ErrTooLong = wire.ErrTooLong
	// ErrUnimplemented is returned if the server does not implement a request, such as a create with a TTL unless
	// extendedTypesEnabled is set.
	ErrUnimplemented = errors.New("the server does not implement this request")
	// ErrSequence is returned by [Session.Enter] after 2³¹ nodes in a directory. Enter then deletes the directory if
	// it is empty, and counting starts again.
	ErrSequence = errors.New("sequence counter of the directory is used up")
	// ErrInvalid is returned, before any I/O, for a path, connect string, option or argument that cannot work, and
	// while the servers grant a session timeout that is too short for locks.
	ErrInvalid = misuse.ErrInvalid
)

// lossReason is why a session ended. kind is its error.type for telemetry.
type lossReason struct{ text, kind string }

func (r lossReason) Error() string     { return r.text }
func (r lossReason) ErrorType() string { return r.kind }

var (
	lossExpired  = lossReason{"expired by the server", "session_expired"}
	lossClock    = lossReason{"no answer through the leader for so long that the servers may have expired it", "session_uncertain"}
	lossReplaced = lossReason{"another session answered on the connection", "session_replaced"}
	lossSuspend  = lossReason{"connection lost, and WithLossOnSuspend is set", "session_suspended"}
)

func stoodStill(d time.Duration) lossReason {
	text := fmt.Sprintf("this process stood still for %v, so the servers may have expired it", d.Round(time.Millisecond))
	return lossReason{text, lossClock.kind}
}

type endError struct {
	id  int64
	why error
}

func (e *endError) Error() string {
	return fmt.Sprintf("session %s: %v: %v", hex(e.id), ErrLost, e.why)
}
func (e *endError) Unwrap() []error { return []error{ErrLost, e.why} }

// reasonOf is for texts that name the session already.
func reasonOf(err error) error {
	var end *endError
	if errors.As(err, &end) {
		return end.why
	}
	return err
}

func hex(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

// refusal leaves out the credential of an identity that was refused, which is a secret.
type refusal struct {
	scheme string
	why    error // only of SASL
}

func (r *refusal) Error() string {
	if r.why != nil {
		return fmt.Sprintf("%v: %v", r.why, zk.ErrAuthFailed)
	}
	return fmt.Sprintf("the server refuses the identity of scheme %q: %v", r.scheme, zk.ErrAuthFailed)
}

func (r *refusal) Unwrap() error { return zk.ErrAuthFailed }

type shortLease struct{ timeout, margin, half time.Duration }

func (e *shortLease) Error() string {
	return fmt.Sprintf("a session timeout of %v less a margin of %v is a lease of %v, and heartbeats need one of %v with "+
		"ticks of %v: a session that owns a node would be lost on healthy servers",
		e.timeout, e.margin, e.timeout-e.margin, clock.Needed(e.timeout, e.half), 2*e.half)
}

func (e *shortLease) Unwrap() error { return ErrInvalid }

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

func (e codeError) ErrorCode() int32 { return int32(e) }

func errorOf(code int32) error {
	if err := codes[code]; err != nil {
		return err
	}
	return codeError(code)
}

// errNotSent means that the request may be sent again, whatever it does.
var errNotSent = errors.New("not sent")

type outcome int

const (
	answered outcome = iota // the server has answered: final
	unsent                  // it was not sent, or the server did not carry it out and may later
	inDoubt                 // nobody knows whether the server carried it out
	expired                 // the session has ended
)

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
