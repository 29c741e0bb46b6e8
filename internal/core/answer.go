package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// errorOf returns the error for a code in the answer of a server.
func errorOf(code int32) error {
	if err := codes[code]; err != nil {
		return err
	}
	return codeError(code)
}

// codes are those that callers can match.
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

// codeError is any other code. It stays a number: see ErrorCode.
type codeError int32

func (e codeError) Error() string {
	if named := codeNames[e]; named != "" {
		return fmt.Sprintf("server error %d, %s", int32(e), named)
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

// errorKind is what an error means for a request.
type errorKind int

const (
	answered    errorKind = iota // the server answered: final
	refused                      // the server did not carry it out, and may later
	replyLost                    // nobody knows whether the server carried it out
	sessionOver                  // the session has ended
)

// classify returns what an error of a request means.
func classify(err error) errorKind {
	var code codeError
	if errors.As(err, &code) {
		switch code {
		case codec.CodeThrottled:
			return refused
		case codec.CodeConnectionLoss, codec.CodeOperationTimeout:
			return replyLost
		}
	}
	switch {
	case errors.Is(err, zk.ErrSessionExpired):
		return sessionOver
	case errors.Is(err, zk.ErrSessionMoved):
		return refused
	case errors.Is(err, zk.ErrConnectionClosed):
		return replyLost
	}
	return answered
}

// errNotSent is the error for a request that was not sent, because its caller has given up.
var errNotSent = errors.New("not sent")

// ofCaller replaces errNotSent by why the caller of the request has given up. It can call functions of the user, so the
// goroutines of a connection do not.
func ofCaller(ctx context.Context, err error) error {
	if !errors.Is(err, errNotSent) {
		return err
	}
	return fmt.Errorf("%w: %w", err, ctx.Err())
}

// Uncertain reports whether the reply to a failed create, set, delete or multi was lost, so that the server may have
// carried it out. It does not report a request whose ctx ended while the request was in flight. The server may have
// carried out that one too.
func Uncertain(err error) bool {
	if errors.Is(err, errNotSent) {
		return false
	}
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, ErrLost) || errors.Is(err, ErrClosed)
}

func ignoreNoNode(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}
