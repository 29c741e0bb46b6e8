package session

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/wire"
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
	-100:                            zk.ErrAPIError,
	wire.CodeUnimplemented:          ErrUnimplemented,
	wire.CodeNoNode:                 zk.ErrNoNode,
	wire.CodeNoAuth:                 zk.ErrNoAuth,
	wire.CodeBadVersion:             zk.ErrBadVersion,
	wire.CodeNoChildrenForEphemeral: zk.ErrNoChildrenForEphemerals,
	wire.CodeNodeExists:             zk.ErrNodeExists,
	wire.CodeNotEmpty:               zk.ErrNotEmpty,
	wire.CodeSessionExpired:         zk.ErrSessionExpired,
	wire.CodeInvalidACL:             zk.ErrInvalidACL,
	wire.CodeAuthFailed:             zk.ErrAuthFailed,
	wire.CodeSessionMoved:           zk.ErrSessionMoved,
	wire.CodeReconfigDisabled:       zk.ErrReconfigDisabled,
	wire.CodeBadArguments:           zk.ErrBadArguments,
}

// codeError is any other code. Its text is that of go-zookeeper.
type codeError int32

func (e codeError) Error() string { return fmt.Sprintf("unknown error: %d", int32(e)) }

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
		case wire.CodeThrottled:
			return refused
		case wire.CodeConnectionLoss, wire.CodeOperationTimeout:
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
