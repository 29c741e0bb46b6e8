package zktest

import (
	"fmt"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// code is one of ZooKeeper's result codes. All but codeOK are errors.
type code int32

const (
	codeOK                     code = wire.CodeOK
	codeRuntimeInconsistency   code = wire.CodeRuntimeInconsistency
	codeMarshallingError       code = wire.CodeMarshallingError
	codeUnimplemented          code = wire.CodeUnimplemented
	codeBadArguments           code = wire.CodeBadArguments
	codeNoNode                 code = wire.CodeNoNode
	codeNoAuth                 code = wire.CodeNoAuth
	codeBadVersion             code = wire.CodeBadVersion
	codeNoChildrenForEphemeral code = wire.CodeNoChildrenForEphemeral
	codeNodeExists             code = wire.CodeNodeExists
	codeNotEmpty               code = wire.CodeNotEmpty
	codeInvalidACL             code = wire.CodeInvalidACL
	codeAuthFailed             code = wire.CodeAuthFailed
	codeNoWatcher              code = wire.CodeNoWatcher
	codeReconfigDisabled       code = wire.CodeReconfigDisabled
	codeSessionExpired         code = wire.CodeSessionExpired
	codeSessionMoved           code = wire.CodeSessionMoved
	codeThrottled              code = wire.CodeThrottled
)

var codeNames = map[code]string{
	codeOK:                     "ok",
	codeRuntimeInconsistency:   "runtime inconsistency",
	codeMarshallingError:       "marshalling error",
	codeUnimplemented:          "unimplemented",
	codeBadArguments:           "bad arguments",
	codeNoNode:                 "no node",
	codeNoAuth:                 "not authorised",
	codeBadVersion:             "bad version",
	codeNoChildrenForEphemeral: "ephemeral nodes have no children",
	codeNodeExists:             "node exists",
	codeNotEmpty:               "node has children",
	codeInvalidACL:             "invalid ACL",
	codeAuthFailed:             "authentication failed",
	codeNoWatcher:              "no such watch",
	codeReconfigDisabled:       "reconfiguration disabled",
	codeSessionExpired:         "session expired",
	codeSessionMoved:           "session moved",
	codeThrottled:              "throttled",
}

// Error returns ZooKeeper's name for the code.
func (c code) Error() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("code %d", int32(c))
}
