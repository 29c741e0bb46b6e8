package otelzk

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// errorType says an error in a word of which there are few.
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

// ownType returns what an error of this module calls itself. Errors of others may have such
// a method too: what we do not know is theirs.
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
	{session.ErrInvalid, errInvalid},
	{queue.ErrConflict, errConflict},
	{queue.ErrSequence, errSequence},
}

// statusCode returns ZooKeeper's name for what a server answered, or for the loss of its
// answer; "" for other errors.
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

// answers are go-zookeeper's errors. Package session adds a closed connection to those after
// which a request is tried again, so that comes last.
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
	{zk.ErrConnectionClosed, codeConnectionLoss},
}

// numbered are the codes that go-zookeeper has no errors for.
var numbered = map[int]string{
	-1:   codeSystemError,
	-2:   codeRuntimeInconsistency,
	-3:   codeDataInconsistency,
	-4:   codeConnectionLoss,
	-5:   codeMarshallingError,
	-6:   codeUnimplemented,
	-7:   codeOperationTimeout,
	-8:   codeBadArguments,
	-119: codeNotReadOnly,
	-120: codeEphemeralOnLocalSession,
	-122: codeRequestTimeout,
	-124: codeSessionClosedRequireSASLAuth,
	-125: codeQuotaExceeded,
	-127: codeThrottledOp,
}

// number reads a code back from the text that go-zookeeper makes of one it does not know;
// 0 for all others.
func number(err error) int {
	const mark = "unknown error: "
	text := err.Error()
	i := strings.LastIndex(text, mark)
	if i < 0 {
		return 0
	}
	digits, _, _ := strings.Cut(text[i+len(mark):], "\n") // of joined errors
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
