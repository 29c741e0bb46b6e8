package zktest

import (
	"bytes"
	"time"
)

// connect answers a client's first frame: a new session, the one it had, or
// session 0 if that is over.
func (st *state) connect(p *peer, frame []byte) {
	d := decode(frame)
	d.Int32() // protocol version
	seen := d.Int64()
	asked := time.Duration(d.Int32()) * time.Millisecond
	id, password := d.Int64(), d.Buffer()
	if d.Bad || seen > st.zxid {
		// A client that has seen more than there is talks to the wrong server.
		st.hangUp(p)
		return
	}
	old := len(d.Rest) == 0 // clients before 3.4 do not say if read-only will do
	p.timeout = min(max(asked, st.conf.minSession), st.conf.maxSession)
	s := st.attach(p, id, password)
	if s == nil {
		p.send(connectedFrame(0, 0, make([]byte, 16), old))
		st.hangUp(p)
		return
	}
	p.session, s.peer, s.timeout = s, p, p.timeout
	p.member = st.main
	if s.own != nil {
		p.member = s.own
		s.own.catchUp(seen)
	}
	st.touch(s)
	p.send(connectedFrame(s.timeout, s.id, s.password, old))
}

// attach finds the session that a client asks for, or nil. Its old connection
// is closed, even if the password is wrong, as ZooKeeper does.
func (st *state) attach(p *peer, id int64, password []byte) *clientSession {
	if id == 0 {
		return st.newSession()
	}
	s := st.sessions[id]
	if s != nil && s.peer != nil {
		st.hangUp(s.peer)
	}
	if s == nil || !bytes.Equal(s.password, password) {
		return nil
	}
	return s
}

func connectedFrame(timeout time.Duration, session int64, password []byte, old bool) []byte {
	e := newFrame()
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
func (st *state) auth(p *peer, xid int32, d *decoder) {
	d.Int32() // type, unused
	scheme, credential := d.String(), d.Buffer()
	if d.Bad {
		st.hangUp(p)
		return
	}
	id, err := authenticate(scheme, credential, p.ids[0])
	if err != nil {
		p.replyAt(0, xid, codeAuthFailed, nil)
		st.hangUp(p)
		return
	}
	p.addID(id)
	p.replyAt(0, xid, codeOK, nil)
}

func (p *peer) addID(id identity) {
	for _, have := range p.ids {
		if have == id {
			return
		}
	}
	p.ids = append(p.ids, id)
}
