package quorum

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// connect processes a client's first frame, which asks for a new session or for one that the client has already.
func (m *Member) connect(p *Peer, frame []byte) {
	d := znode.Decode(frame)
	d.Int32() // protocol version
	p.seen = d.Int64()
	asked := time.Duration(d.Int32()) * time.Millisecond
	id, password := d.Int64(), d.Buffer()
	if d.Bad || !m.serving() || p.seen > m.tree.Zxid {
		// A client that has seen a later transaction than this server must try another one.
		m.st.hangUp(p)
		return
	}
	p.old = len(d.Rest) == 0 // clients before 3.4 do not say whether they accept a read-only server
	p.timeout = min(max(asked, m.MinSession), m.MaxSession)
	if id == 0 {
		m.newSession(p)
		return
	}
	// ZooKeeper closes the other connection, too, even if the password is wrong.
	if other := m.clients[id]; other != nil {
		m.st.hangUp(other)
	}
	p.join(id)
	switch {
	case !bytes.Equal(password, passwordOf(id)):
		p.joined(false)
	case m.lead != nil:
		p.joined(m.lead.revalidate(touch{id, p.timeout}, nil))
	default:
		m.follow.revalidate(p)
	}
}

// newSession begins the transaction that creates a session.
func (m *Member) newSession(p *Peer) {
	p.join(m.nextID)
	m.nextID++
	if m.follow != nil { // a leader touches the session when it prepares the transaction
		m.touch(p.session, p.timeout)
	}
	m.submit(&request{from: p, at: m, session: p.session, op: codec.OpConnect, timeout: p.timeout})
}

// passwordOf returns a session's password, which every server can compute.
func passwordOf(session int64) []byte {
	seed := binary.BigEndian.AppendUint64([]byte("turnstile"), uint64(session))
	sum := sha256.Sum256(seed)
	return sum[:16]
}

// join begins a handshake. Later frames of the client wait for its end.
func (p *Peer) join(session int64) {
	p.session, p.joining = session, true
	p.at.clients[session] = p
}

// joined ends a handshake. It refuses the client if its session is not valid.
func (p *Peer) joined(valid bool) {
	if p.gone {
		return
	}
	p.joining = false
	if !valid {
		p.send(connectedFrame(0, 0, make([]byte, 16), p.old))
		p.st.hangUp(p)
		return
	}
	p.ready, p.view = true, p.at.replica
	p.send(connectedFrame(p.timeout, p.session, passwordOf(p.session), p.old))
	early := p.early
	p.early = nil
	for _, frame := range early {
		p.receive(frame)
	}
}

func connectedFrame(timeout time.Duration, session int64, password []byte, old bool) []byte {
	e := znode.NewFrame()
	e.Int32(0) // protocol version
	e.Int32(int32(timeout.Milliseconds()))
	e.Int64(session)
	e.Buffer(password)
	if !old {
		e.Bool(false) // not read-only
	}
	return e.Frame()
}

// auth adds an identity to the connection.
func (st *State) auth(p *Peer, xid int32, d *znode.Decoder) {
	d.Int32() // type, unused
	scheme, credential := d.String(), d.Buffer()
	if d.Bad {
		st.hangUp(p)
		return
	}
	id, err := znode.Authenticate(scheme, credential, p.ids[0])
	if err != nil {
		p.replyAt(0, xid, znode.CodeAuthFailed, nil)
		st.hangUp(p)
		return
	}
	p.addID(id)
	p.replyAt(0, xid, znode.CodeOK, nil)
}

func (p *Peer) addID(id znode.Identity) {
	if !slices.Contains(p.ids, id) {
		p.ids = append(p.ids, id)
	}
}
