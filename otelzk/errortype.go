package otelzk

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// errorType returns a word of low cardinality for an error.
func errorType(err error) string {
	if t := ownType(err); t != "" {
		return t
	}
	for _, e := range sentinels {
		if errors.Is(err, e.err) {
			return e.name
		}
	}
	if code := statusCode(err); code != "" {
		return code
	}
	return errOther
}

// ownType returns the ErrorType of an error of this module. Errors of other packages may have such a
// method too, so unknown words are ignored.
func ownType(err error) string {
	var own interface{ ErrorType() string }
	if !errors.As(err, &own) {
		return ""
	}
	switch t := own.ErrorType(); t {
	case errSessionExpired, errSessionUncertain, errSessionReplaced, errSessionSuspended, errNodeDeleted:
		return t
	}
	return ""
}

type named struct {
	err  error
	name string
}

var sentinels = []named{
	{context.DeadlineExceeded, errTimeout},
	{session.ErrClosed, errClosed},
	{session.ErrLost, errLost},
	{session.ErrTooManyNodes, errTooManyNodes},
	{session.ErrTooLong, errTooLong},
	{session.ErrInvalid, errInvalid},
	{queue.ErrConflict, errConflict},
	{queue.ErrSequence, errSequence},
}

// statusCode returns ZooKeeper's name for the answer of a server or for the loss of its answer, and ""
// for other errors.
func statusCode(err error) string {
	if ownType(err) == errSessionExpired {
		return codeSessionExpired
	}
	if name := numbered[number(err)]; name != "" {
		return name
	}
	for _, e := range answers {
		if errors.Is(err, e.err) {
			return e.name
		}
	}
	return ""
}

// answers are go-zookeeper's errors. ErrConnectionClosed comes last, since package session joins it to
// errors after which a request is tried again.
var answers = []named{
	{zk.ErrAPIError, codeAPIError},
	{zk.ErrAuthFailed, codeAuthFailed},
	{zk.ErrBadArguments, codeBadArguments},
	{zk.ErrBadVersion, codeBadVersion},
	{zk.ErrInvalidACL, codeInvalidACL},
	{zk.ErrNoAuth, codeNoAuth},
	{zk.ErrNoChildrenForEphemerals, codeNoChildrenForEphemerals},
	{zk.ErrNoNode, codeNoNode},
	{zk.ErrNodeExists, codeNodeExists},
	{zk.ErrNotEmpty, codeNotEmpty},
	{zk.ErrReconfigDisabled, codeReconfigDisabled},
	{zk.ErrSessionExpired, codeSessionExpired},
	{zk.ErrSessionMoved, codeSessionMoved},
	{session.ErrUnimplemented, codeUnimplemented},
	{zk.ErrConnectionClosed, codeConnectionLoss},
}

// numbered are the codes for which neither go-zookeeper nor package session has an error.
var numbered = map[int32]string{
	-1:   codeSystemError,
	-2:   codeRuntimeInconsistency,
	-3:   codeDataInconsistency,
	-4:   codeConnectionLoss,
	-5:   codeMarshallingError,
	-7:   codeOperationTimeout,
	-119: codeNotReadOnly,
	-120: codeEphemeralOnLocalSession,
	-122: codeRequestTimeout,
	-124: codeSessionClosedRequireSASLAuth,
	-125: codeQuotaExceeded,
	-127: codeThrottledOp,
}

// number returns the code of a server for which there is no error, or 0.
func number(err error) int32 {
	var coded interface{ ErrorCode() int32 }
	if !errors.As(err, &coded) {
		return 0
	}
	return coded.ErrorCode()
}
