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
	_ = same[OpConnect-codec.OpConnect]
	_ = same[OpClose-codec.OpClose]
	_ = same[OpNotification-codec.OpNotification]
	_ = same[OpCreate-codec.OpCreate]
	_ = same[OpDelete-codec.OpDelete]
	_ = same[OpExists-codec.OpExists]
	_ = same[OpGetData-codec.OpGetData]
	_ = same[OpSetData-codec.OpSetData]
	_ = same[OpGetACL-codec.OpGetACL]
	_ = same[OpSetACL-codec.OpSetACL]
	_ = same[OpGetChildren-codec.OpGetChildren]
	_ = same[OpSync-codec.OpSync]
	_ = same[OpPing-codec.OpPing]
	_ = same[OpGetChildren2-codec.OpGetChildren2]
	_ = same[OpCheck-codec.OpCheck]
	_ = same[OpMulti-codec.OpMulti]
	_ = same[OpCreate2-codec.OpCreate2]
	_ = same[OpReconfig-codec.OpReconfig]
	_ = same[OpCheckWatches-codec.OpCheckWatches]
	_ = same[OpRemoveWatches-codec.OpRemoveWatches]
	_ = same[OpCreateContainer-codec.OpCreateContainer]
	_ = same[OpDeleteContainer-codec.OpDeleteContainer]
	_ = same[OpCreateTTL-codec.OpCreateTTL]
	_ = same[OpMultiRead-codec.OpMultiRead]
	_ = same[OpAuth-codec.OpAuth]
	_ = same[OpSetWatches-codec.OpSetWatches]
	_ = same[OpSASL-codec.OpSASL]
	_ = same[OpGetEphemerals-codec.OpGetEphemerals]
	_ = same[OpGetAllChildrenNumber-codec.OpGetAllChildrenNumber]
	_ = same[OpSetWatches2-codec.OpSetWatches2]
	_ = same[OpAddWatch-codec.OpAddWatch]
	_ = same[OpWhoAmI-codec.OpWhoAmI]
}

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
