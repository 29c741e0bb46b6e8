package quorum

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// request processes a client's frame after the handshake.
func (m *Member) request(p *Peer, frame []byte) {
	d := znode.Decode(frame)
	xid, op := d.Int32(), d.Int32()
	if d.Bad {
		m.st.hangUp(p)
		return
	}
	switch {
	case op == codec.OpAuth:
		m.st.auth(p, xid, d)
		return
	case op == codec.OpSASL: // like OpAuth, it does not touch the session
		m.st.sasl(p, xid, d)
		return
	case !m.st.admits(p, xid):
		return
	case !m.touch(p.session, p.timeout):
		return // the session is over; ZooKeeper drops its requests
	case !m.knows(op):
		m.refuse(p, xid)
		return
	}
	r := &request{from: p, at: m, session: p.session, xid: xid, op: op, body: d, ids: p.ids}
	// As in ZooKeeper, pings and the end of a session are never throttled.
	if m.st.Throttle != nil && op != codec.OpPing && op != codec.OpClose && m.st.Throttle(frame, p.session) {
		r.refused = znode.CodeThrottled
	}
	if m.lead != nil && !m.needsAgreement(r) && r.refused == nil {
		r.refused = m.lead.tracker.check(r.session, nil)
	}
	m.submit(r)
}

// touch notes that the server has heard of a session. The leader extends the session at once. A follower tells the
// leader in its next answer to a ping. It returns false if the server knows that the session is over.
func (m *Member) touch(session int64, timeout time.Duration) bool {
	if m.lead != nil {
		return m.lead.tracker.touch(session, timeout)
	}
	m.follow.touched[session] = timeout
	return true
}

// knows reports whether the server implements a kind of request.
func (m *Member) knows(op int32) bool {
	switch op {
	case codec.OpPing, codec.OpClose, codec.OpSync, codec.OpMulti, codec.OpReconfig:
		return true
	default:
		return writes[op] || reads[op] != nil
	}
}

// refuse answers a request that the server does not implement. Like ZooKeeper it then closes the connection.
func (m *Member) refuse(p *Peer, xid int32) {
	p.replyAt(-1, xid, znode.CodeUnimplemented, nil)
	m.st.hangUp(p)
}

// answer answers a request that needs no agreement of the ensemble.
func (m *Member) answer(r *request) {
	p := r.from
	switch {
	case p.gone:
	case r.refused == znode.CodeSessionMoved:
		m.st.hangUp(p)
	case r.refused != nil:
		p.result(r.xid, nil, r.refused)
	case r.op == codec.OpPing:
		p.reply(codec.XidPing, znode.CodeOK, nil)
	case r.op == codec.OpSync:
		p.synced(r)
	default:
		body, err := reads[r.op](p, r.body)
		if r.body.Bad {
			err = znode.CodeMarshallingError
		}
		p.result(r.xid, body, err)
	}
}

// result answers a request with a body or, if there is an error, with its code.
func (p *Peer) result(xid int32, body []byte, err error) {
	if err == nil {
		p.reply(xid, znode.CodeOK, body)
		return
	}
	p.reply(xid, err.(znode.Code), nil)
}

// synced answers a sync.
func (p *Peer) synced(r *request) {
	path := r.body.String()
	if r.body.Bad {
		p.reply(r.xid, znode.CodeMarshallingError, nil)
		return
	}
	e := new(znode.Encoder)
	e.String(path)
	p.reply(r.xid, znode.CodeOK, e.B)
}

// answer answers the request that has become this transaction.
func (t *txn) answer(stats []znode.Stat) {
	r, p := t.request, t.request.from
	switch {
	case t.err == znode.CodeSessionMoved:
		p.st.hangUp(p)
	case t.err != nil:
		p.result(r.xid, nil, t.err)
	case r.op == codec.OpConnect:
		p.joined(true)
	case r.op == codec.OpClose:
		p.replyAt(t.zxid, r.xid, znode.CodeOK, nil)
		p.st.hangUp(p)
	case r.op == codec.OpMulti:
		p.reply(r.xid, znode.CodeOK, t.results(stats))
	default:
		e := new(znode.Encoder)
		e.WriteResult(r.op, t.changes[0], stats[0])
		p.reply(r.xid, znode.CodeOK, e.B)
	}
}
