package quorum

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// A server answers the requests of one session in order. A request that the ensemble must agree on holds up all later
// requests of its session, including reads and pings. Requests of different sessions do not wait for each other.

// A request is a client's request while the servers process it.
type request struct {
	from    *Peer       // the client; nil: no client waits for an answer
	at      *Member     // the client's server
	via     *quorumConn // the connection on which the leader got it; nil: from a client of its own
	session int64
	xid     int32
	op      int32
	body    *znode.Decoder   // after the header
	ids     []znode.Identity // of the client when it sent the request
	timeout time.Duration    // of the session to be created
	refused error            // the error with which the server answers it by itself, or nil
}

// submit processes a request once the session's earlier requests are answered.
func (m *Member) submit(r *request) {
	queue := m.pending[r.session]
	agreed := m.needsAgreement(r)
	if agreed || len(queue) > 0 {
		m.pending[r.session] = append(queue, r)
	}
	switch {
	case agreed && m.lead != nil:
		m.lead.prepare(r)
	case agreed:
		m.follow.forward(r)
	case len(queue) == 0:
		m.answer(r)
	}
}

// needsAgreement reports whether the server cannot answer the request by itself. A leader answers syncs
// of its own clients by itself, even if it has been deposed and does not know that yet.
func (m *Member) needsAgreement(r *request) bool {
	if r.refused != nil {
		return false
	}
	switch r.op {
	case codec.OpConnect, codec.OpClose, codec.OpMulti, codec.OpReconfig:
		return true
	case codec.OpSync:
		return m.follow != nil
	default:
		return writes[r.op]
	}
}

// complete answers a request that the ensemble has agreed on, and then the requests that it has held up.
func (m *Member) complete(r *request, answer func()) {
	queue := m.pending[r.session]
	if len(queue) == 0 || queue[0] != r {
		return // it is from before the server lost its leader
	}
	m.pending[r.session] = queue[1:]
	if !r.from.gone {
		answer()
	}
	for {
		queue := m.pending[r.session]
		if len(queue) == 0 {
			delete(m.pending, r.session)
			return
		}
		if m.needsAgreement(queue[0]) {
			return
		}
		m.pending[r.session] = queue[1:]
		m.answer(queue[0])
	}
}
