package zktest

import "github.com/turnstile-go/turnstile/internal/wire"

// An Op is a kind of request, by its number in ZooKeeper's protocol.
type Op int32

// The requests of ZooKeeper's protocol. Two are not requests, but can be matched like them: OpConnect
// is the handshake that opens a connection, and OpNotification is a watch event, which
// [Proxy.HoldReply] and [Proxy.CutAfterCommit] match as if it were a reply.
const (
	OpConnect              Op = wire.OpConnect
	OpClose                Op = wire.OpClose
	OpNotification         Op = wire.OpNotification
	OpCreate               Op = wire.OpCreate
	OpDelete               Op = wire.OpDelete
	OpExists               Op = wire.OpExists
	OpGetData              Op = wire.OpGetData
	OpSetData              Op = wire.OpSetData
	OpGetACL               Op = wire.OpGetACL
	OpSetACL               Op = wire.OpSetACL
	OpGetChildren          Op = wire.OpGetChildren
	OpSync                 Op = wire.OpSync
	OpPing                 Op = wire.OpPing
	OpGetChildren2         Op = wire.OpGetChildren2
	OpCheck                Op = wire.OpCheck
	OpMulti                Op = wire.OpMulti
	OpCreate2              Op = wire.OpCreate2
	OpReconfig             Op = wire.OpReconfig
	OpCheckWatches         Op = wire.OpCheckWatches
	OpRemoveWatches        Op = wire.OpRemoveWatches
	OpCreateContainer      Op = wire.OpCreateContainer
	OpDeleteContainer      Op = wire.OpDeleteContainer
	OpCreateTTL            Op = wire.OpCreateTTL
	OpMultiRead            Op = wire.OpMultiRead
	OpAuth                 Op = wire.OpAuth
	OpSetWatches           Op = wire.OpSetWatches
	OpSASL                 Op = wire.OpSASL
	OpGetEphemerals        Op = wire.OpGetEphemerals
	OpGetAllChildrenNumber Op = wire.OpGetAllChildrenNumber
	OpSetWatches2          Op = wire.OpSetWatches2
	OpAddWatch             Op = wire.OpAddWatch
	OpWhoAmI               Op = wire.OpWhoAmI
)

// String returns ZooKeeper's name for the request.
func (o Op) String() string {
	return wire.OpName(int32(o))
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
