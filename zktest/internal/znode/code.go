package znode

import (
	"fmt"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Code is one of ZooKeeper's result codes. All but CodeOK are errors.
type Code int32

// The result codes that the server uses.
const (
	CodeOK                     Code = codec.CodeOK
	CodeRuntimeInconsistency   Code = codec.CodeRuntimeInconsistency
	CodeMarshallingError       Code = codec.CodeMarshallingError
	CodeUnimplemented          Code = codec.CodeUnimplemented
	CodeBadArguments           Code = codec.CodeBadArguments
	CodeNoNode                 Code = codec.CodeNoNode
	CodeNoAuth                 Code = codec.CodeNoAuth
	codeBadVersion             Code = codec.CodeBadVersion
	codeNoChildrenForEphemeral Code = codec.CodeNoChildrenForEphemeral
	codeNodeExists             Code = codec.CodeNodeExists
	CodeNotEmpty               Code = codec.CodeNotEmpty
	CodeInvalidACL             Code = codec.CodeInvalidACL
	CodeAuthFailed             Code = codec.CodeAuthFailed
	CodeNoWatcher              Code = codec.CodeNoWatcher
	CodeReconfigDisabled       Code = codec.CodeReconfigDisabled
	CodeSessionExpired         Code = codec.CodeSessionExpired
	CodeSessionMoved           Code = codec.CodeSessionMoved
	CodeThrottled              Code = codec.CodeThrottled
	CodeRequireSASL            Code = codec.CodeSessionClosedRequireSASLAuth
)

var codeNames = map[Code]string{
	CodeOK:                     "ok",
	CodeRuntimeInconsistency:   "runtime inconsistency",
	CodeMarshallingError:       "marshalling error",
	CodeUnimplemented:          "unimplemented",
	CodeBadArguments:           "bad arguments",
	CodeNoNode:                 "no node",
	CodeNoAuth:                 "not authorised",
	codeBadVersion:             "bad version",
	codeNoChildrenForEphemeral: "ephemeral nodes have no children",
	codeNodeExists:             "node exists",
	CodeNotEmpty:               "node has children",
	CodeInvalidACL:             "invalid ACL",
	CodeAuthFailed:             "authentication failed",
	CodeNoWatcher:              "no such watch",
	CodeReconfigDisabled:       "reconfiguration disabled",
	CodeSessionExpired:         "session expired",
	CodeSessionMoved:           "session moved",
	CodeThrottled:              "throttled",
	CodeRequireSASL:            "SASL required",
}

// Error returns ZooKeeper's name for the code.
func (c Code) Error() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("code %d", int32(c))
}
