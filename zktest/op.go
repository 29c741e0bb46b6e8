package zktest

import (
	"github.com/turnstile-go/turnstile/internal/codec"
)

// An Op is a kind of request, by its number in ZooKeeper's protocol.
type Op int32

// The requests of ZooKeeper's protocol. Two are not requests, but can be matched like them: OpConnect
// is the handshake that opens a connection, and OpNotification is a watch event, which
// [Proxy.HoldReply] and [Proxy.CutAfterCommit] match as if it were a reply.
const (
	OpConnect              Op = codec.OpConnect
	OpClose                Op = codec.OpClose
	OpNotification         Op = codec.OpNotification
	OpCreate               Op = codec.OpCreate
	OpDelete               Op = codec.OpDelete
	OpExists               Op = codec.OpExists
	OpGetData              Op = codec.OpGetData
	OpSetData              Op = codec.OpSetData
	OpGetACL               Op = codec.OpGetACL
	OpSetACL               Op = codec.OpSetACL
	OpGetChildren          Op = codec.OpGetChildren
	OpSync                 Op = codec.OpSync
	OpPing                 Op = codec.OpPing
	OpGetChildren2         Op = codec.OpGetChildren2
	OpCheck                Op = codec.OpCheck
	OpMulti                Op = codec.OpMulti
	OpCreate2              Op = codec.OpCreate2
	OpReconfig             Op = codec.OpReconfig
	OpCheckWatches         Op = codec.OpCheckWatches
	OpRemoveWatches        Op = codec.OpRemoveWatches
	OpCreateContainer      Op = codec.OpCreateContainer
	OpDeleteContainer      Op = codec.OpDeleteContainer
	OpCreateTTL            Op = codec.OpCreateTTL
	OpMultiRead            Op = codec.OpMultiRead
	OpAuth                 Op = codec.OpAuth
	OpSetWatches           Op = codec.OpSetWatches
	OpSASL                 Op = codec.OpSASL
	OpGetEphemerals        Op = codec.OpGetEphemerals
	OpGetAllChildrenNumber Op = codec.OpGetAllChildrenNumber
	OpSetWatches2          Op = codec.OpSetWatches2
	OpAddWatch             Op = codec.OpAddWatch
	OpWhoAmI               Op = codec.OpWhoAmI
)

// String returns ZooKeeper's name for the request.
func (o Op) String() string {
	return codec.OpName(int32(o))
}

// hasPath reports whether the request's body begins with a path.
func (o Op) hasPath() bool {
	switch o {
	case OpCreate, OpDelete, OpExists, OpGetData, OpSetData, OpGetACL, OpSetACL,
		OpGetChildren, OpSync, OpGetChildren2, OpCheck, OpCreate2, OpCheckWatches,
		OpRemoveWatches, OpCreateContainer, OpDeleteContainer, OpCreateTTL,
		OpGetEphemerals, OpGetAllChildrenNumber, OpAddWatch:
		return true
	default:
		return false
	}
}
