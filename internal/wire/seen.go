package wire

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
)

// Seen is the last transaction (zxid) of which a session has an answer. The session tells it the server in the
// next handshake, which keeps a server away that lags behind. All connections of a session share it, since
// zk.Conn does not see the transactions of the session's requests.
type Seen struct{ zxid atomic.Int64 }

// answered notes the transaction in the answer to a request. Those to heartbeats do not count: what they show
// nobody has seen.
func (s *Seen) answered(zxid int64) {
	if zxid > 0 {
		s.zxid.Store(zxid)
	}
}

// Last returns the transaction, or 0 if there was no answer yet.
func (s *Seen) Last() int64 { return s.zxid.Load() }

// zxidInHello is where the transaction is in a handshake: after the length and the protocol's version.
const zxidInHello = 4 + 4

// fill returns a handshake of zk.Conn with the transaction. It does not change b.
func (s *Seen) fill(b []byte) []byte {
	b = bytes.Clone(b)
	binary.BigEndian.PutUint64(b[zxidInHello:], uint64(s.zxid.Load()))
	return b
}
