package clock

import "github.com/turnstile-go/turnstile/internal/codec"

// evidence is what an answer shows about the ensemble: see lease.go.
type evidence int

const (
	evidenceNone   evidence = iota // the server may have answered alone
	evidenceLeader                 // the leader has answered
	evidenceQuorum                 // a quorum has agreed to the answer
)

// shows returns what an answer to a request shows. The leader answers a sync alone, and does so
// for seconds after it was cut off from the other servers. A quorum agrees to each write, also to
// one that is refused because of the nodes that exist. Other refusals a follower can give alone:
// for lack of rights or for a bad ACL (enableEagerACLCheck), because it is overloaded, or because
// it is read-only. A multi that was refused because of one of its operations has CodeOK in its header, and
// each operation's code in its body. Only the leader tries the operations, and a quorum agrees to the refusal.
func shows(op, code int32) evidence {
	switch op {
	case codec.OpSync:
		if code == codec.CodeOK {
			return evidenceLeader
		}
	case codec.OpCreate, codec.OpCreate2, codec.OpCreateContainer, codec.OpCreateTTL, codec.OpDelete, codec.OpSetData, codec.OpSetACL, codec.OpMulti:
		switch code {
		case codec.CodeOK, codec.CodeNoNode, codec.CodeNodeExists, codec.CodeBadVersion, codec.CodeNotEmpty:
			return evidenceQuorum
		}
	}
	return evidenceNone
}
