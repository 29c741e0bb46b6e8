package zktest

import "github.com/turnstile-go/turnstile/internal/wire"

// An Op is a kind of request, by its number in ZooKeeper's protocol.
type Op int32

// The requests of ZooKeeper's protocol. Two are not requests, but can be matched like them: OpConnect
// is the handshake that opens a connection, and OpNotification is a watch event, which
// [Proxy.HoldReply] and [Proxy.CutAfterCommit] match as if it were a reply.
const (
	OpConnect              Op = -10
	OpClose                Op = -11
	OpNotification         Op = 0
	OpCreate               Op = 1
	OpDelete               Op = 2
	OpExists               Op = 3
	OpGetData              Op = 4
	OpSetData              Op = 5
	OpGetACL               Op = 6
	OpSetACL               Op = 7
	OpGetChildren          Op = 8
	OpSync                 Op = 9
	OpPing                 Op = 11
	OpGetChildren2         Op = 12
	OpCheck                Op = 13
	OpMulti                Op = 14
	OpCreate2              Op = 15
	OpReconfig             Op = 16
	OpCheckWatches         Op = 17
	OpRemoveWatches        Op = 18
	OpCreateContainer      Op = 19
	OpDeleteContainer      Op = 20
	OpCreateTTL            Op = 21
	OpMultiRead            Op = 22
	OpAuth                 Op = 100
	OpSetWatches           Op = 101
	OpSASL                 Op = 102
	OpGetEphemerals        Op = 103
	OpGetAllChildrenNumber Op = 104
	OpSetWatches2          Op = 105
	OpAddWatch             Op = 106
	OpWhoAmI               Op = 107
)

// The numbers are literals so that go doc shows them. The compiler checks them here: an array index is
// out of bounds if a number differs from package wire's.
func _() {
	var same [1]struct{}
	_ = same[OpConnect-wire.OpConnect]
	_ = same[OpClose-wire.OpClose]
	_ = same[OpNotification-wire.OpNotification]
	_ = same[OpCreate-wire.OpCreate]
	_ = same[OpDelete-wire.OpDelete]
	_ = same[OpExists-wire.OpExists]
	_ = same[OpGetData-wire.OpGetData]
	_ = same[OpSetData-wire.OpSetData]
	_ = same[OpGetACL-wire.OpGetACL]
	_ = same[OpSetACL-wire.OpSetACL]
	_ = same[OpGetChildren-wire.OpGetChildren]
	_ = same[OpSync-wire.OpSync]
	_ = same[OpPing-wire.OpPing]
	_ = same[OpGetChildren2-wire.OpGetChildren2]
	_ = same[OpCheck-wire.OpCheck]
	_ = same[OpMulti-wire.OpMulti]
	_ = same[OpCreate2-wire.OpCreate2]
	_ = same[OpReconfig-wire.OpReconfig]
	_ = same[OpCheckWatches-wire.OpCheckWatches]
	_ = same[OpRemoveWatches-wire.OpRemoveWatches]
	_ = same[OpCreateContainer-wire.OpCreateContainer]
	_ = same[OpDeleteContainer-wire.OpDeleteContainer]
	_ = same[OpCreateTTL-wire.OpCreateTTL]
	_ = same[OpMultiRead-wire.OpMultiRead]
	_ = same[OpAuth-wire.OpAuth]
	_ = same[OpSetWatches-wire.OpSetWatches]
	_ = same[OpSASL-wire.OpSASL]
	_ = same[OpGetEphemerals-wire.OpGetEphemerals]
	_ = same[OpGetAllChildrenNumber-wire.OpGetAllChildrenNumber]
	_ = same[OpSetWatches2-wire.OpSetWatches2]
	_ = same[OpAddWatch-wire.OpAddWatch]
	_ = same[OpWhoAmI-wire.OpWhoAmI]
}

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
