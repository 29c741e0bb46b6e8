package wire

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
)

// Seen is the last transaction (zxid) of which a session's client has an answer. After a reconnect
// the client tells it the server, in the handshake and in setWatches. The handshake keeps a server away that
// lags behind. From setWatches the server learns which events the client has missed. If there are many watches,
// zk.Conn sends a second setWatches after the answer to the first. All of a connection tell the transaction that the
// handshake has told: later answers do not show the events that are missed.
//
// zk.Conn notes the transaction in its reader, and puts it into setWatches in another goroutine, without
// a lock. So a [Conn] does it instead: it hides the transactions of answers from zk.Conn, and fills
// them in where zk.Conn would.
type Seen struct{ zxid atomic.Int64 }

// answered notes the transaction in the answer to a request. Those to heartbeats do not count, since they may
// come before setWatches is sent.
func (s *Seen) answered(zxid int64) {
	if zxid > 0 {
		s.zxid.Store(zxid)
	}
}

// Where the transaction is in a frame.
const (
	zxidInHello      = 4 + 4     // after the length and the protocol's version
	zxidInSetWatches = 4 + 4 + 4 // after the length, the request's number and its kind
	zxidInReply      = 4 + 4     // after the length and the request's number
	zxidSize         = 8
)

// withZxid returns a frame of zk.Conn with the transaction at an offset. It does not change b.
func withZxid(b []byte, offset int, zxid int64) []byte {
	b = slices.Clone(b)
	binary.BigEndian.PutUint64(b[offset:], uint64(zxid))
	return b
}

// hideZxid hides the transaction from zk.Conn in a piece of a reply. The piece begins at an offset of the frame.
func hideZxid(piece []byte, offset int) {
	from, to := max(zxidInReply-offset, 0), min(zxidInReply+zxidSize-offset, len(piece))
	if from < to {
		clear(piece[from:to])
	}
}
