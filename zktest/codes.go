package zktest

import "fmt"

// code is one of ZooKeeper's result codes. All but codeOK are errors.
type code int32

const (
	codeOK                     code = 0
	codeRuntimeInconsistency   code = -2
	codeMarshallingError       code = -5
	codeUnimplemented          code = -6
	codeBadArguments           code = -8
	codeNoNode                 code = -101
	codeNoAuth                 code = -102
	codeBadVersion             code = -103
	codeNoChildrenForEphemeral code = -108
	codeNodeExists             code = -110
	codeNotEmpty               code = -111
	codeInvalidACL             code = -114
	codeAuthFailed             code = -115
	codeNoWatcher              code = -121
	codeReconfigDisabled       code = -123
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
}

// Error returns ZooKeeper's name for the code.
func (c code) Error() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("code %d", int32(c))
}
