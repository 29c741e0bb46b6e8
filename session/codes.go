package session

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
)

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

// codeNames are the other codes of KeeperException.Code in ZooKeeper 3.5 to 3.9, by the names that
// ZooKeeper gives them, and what they mean.
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
	switch {
	case errors.As(err, &code) && code == codec.CodeThrottled, errors.Is(err, zk.ErrSessionMoved), errors.Is(err, errNotSent):
		return unsent
	case errors.As(err, &code) && (code == codec.CodeConnectionLoss || code == codec.CodeOperationTimeout):
		return inDoubt
	case errors.Is(err, zk.ErrSessionExpired):
		return expired
	case errors.Is(err, zk.ErrConnectionClosed):
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
