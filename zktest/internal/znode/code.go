package znode

import (
	"fmt"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// Code is one of ZooKeeper's result codes. All but CodeOK are errors.
type Code int32

// The result codes that the server uses.
const (
	CodeOK                     Code = wire.CodeOK
	CodeRuntimeInconsistency   Code = wire.CodeRuntimeInconsistency
	CodeMarshallingError       Code = wire.CodeMarshallingError
	CodeUnimplemented          Code = wire.CodeUnimplemented
	CodeBadArguments           Code = wire.CodeBadArguments
	CodeNoNode                 Code = wire.CodeNoNode
	CodeNoAuth                 Code = wire.CodeNoAuth
	codeBadVersion             Code = wire.CodeBadVersion
	codeNoChildrenForEphemeral Code = wire.CodeNoChildrenForEphemeral
	codeNodeExists             Code = wire.CodeNodeExists
	CodeNotEmpty               Code = wire.CodeNotEmpty
	CodeInvalidACL             Code = wire.CodeInvalidACL
	CodeAuthFailed             Code = wire.CodeAuthFailed
	CodeNoWatcher              Code = wire.CodeNoWatcher
	CodeReconfigDisabled       Code = wire.CodeReconfigDisabled
	CodeSessionExpired         Code = wire.CodeSessionExpired
	CodeSessionMoved           Code = wire.CodeSessionMoved
	CodeThrottled              Code = wire.CodeThrottled
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
}

// Error returns ZooKeeper's name for the code.
func (c Code) Error() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("code %d", int32(c))
}
