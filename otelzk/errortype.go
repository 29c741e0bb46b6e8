package otelzk

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// errorType returns a word of low cardinality for an error.
func errorType(err error) string {
	return cmp.Or(ownType(err), nameIn(sentinels, err), statusCode(err), "_OTHER")
}

// ownType returns the ErrorType of a loss. Errors of other packages may have such a method too, so unknown words are
// ignored.
func ownType(err error) string {
	var own interface{ ErrorType() string }
	if errors.As(err, &own) && slices.Contains(lossReasons, own.ErrorType()) {
		return own.ErrorType()
	}
	return ""
}

type named struct {
	err  error
	name string
}

func nameIn(all []named, err error) string {
	for _, e := range all {
		if errors.Is(err, e.err) {
			return e.name
		}
	}
	return ""
}

// sentinels are the errors that no server has answered.
var sentinels = []named{
	{context.DeadlineExceeded, "timeout"}, {session.ErrClosed, "closed"}, {session.ErrLost, "lost"},
	{session.ErrTooManyNodes, "too_many_nodes"}, {session.ErrTooLong, "too_long"}, {session.ErrInvalid, "invalid"},
	{queue.ErrConflict, "conflict"}, {queue.ErrSequence, "sequence_used_up"},
}

// statusCode returns ZooKeeper's name for the answer of a server or for the loss of its answer, and ""
// for other errors.
func statusCode(err error) string {
	var coded interface{ ErrorCode() int32 }
	switch {
	case ownType(err) == "session_expired":
		return "SESSIONEXPIRED"
	case errors.As(err, &coded) && numbered[coded.ErrorCode()] != "":
		return numbered[coded.ErrorCode()]
	}
	return nameIn(answers, err)
}

// answers are go-zookeeper's errors. ErrConnectionClosed comes last, since package session joins it to
// errors after which a request is tried again.
var answers = []named{
	{zk.ErrAPIError, "APIERROR"}, {zk.ErrAuthFailed, "AUTHFAILED"}, {zk.ErrBadArguments, "BADARGUMENTS"},
	{zk.ErrBadVersion, "BADVERSION"}, {zk.ErrInvalidACL, "INVALIDACL"}, {zk.ErrNoAuth, "NOAUTH"},
	{zk.ErrNoChildrenForEphemerals, "NOCHILDRENFOREPHEMERALS"}, {zk.ErrNoNode, "NONODE"},
	{zk.ErrNodeExists, "NODEEXISTS"}, {zk.ErrNotEmpty, "NOTEMPTY"}, {zk.ErrReconfigDisabled, "RECONFIGDISABLED"},
	{zk.ErrSessionExpired, "SESSIONEXPIRED"}, {zk.ErrSessionMoved, "SESSIONMOVED"},
	{session.ErrUnimplemented, "UNIMPLEMENTED"}, {zk.ErrConnectionClosed, "CONNECTIONLOSS"},
}

// numbered are the codes for which neither go-zookeeper nor package session has an error.
var numbered = map[int32]string{
	-1: "SYSTEMERROR", -2: "RUNTIMEINCONSISTENCY", -3: "DATAINCONSISTENCY", -4: "CONNECTIONLOSS", -5: "MARSHALLINGERROR",
	-7: "OPERATIONTIMEOUT", -119: "NOTREADONLY", -120: "EPHEMERALONLOCALSESSION", -122: "REQUESTTIMEOUT",
	-124: "SESSIONCLOSEDREQUIRESASLAUTH", -125: "QUOTAEXCEEDED", -127: "THROTTLEDOP",
}
