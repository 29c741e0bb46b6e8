package wire

import "sync/atomic"

// Seen is the last transaction (zxid) of which a session has an answer. The session tells it the server in the
// next handshake, which keeps a server away that lags behind. All connections of a session share it.
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
