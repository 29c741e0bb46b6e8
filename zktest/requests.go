package zktest

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// request answers any frame of a client after its first.
func (st *state) request(p *peer, frame []byte) {
	d := decode(frame)
	xid, op := d.Int32(), Op(d.Int32())
	if d.Bad {
		st.hangUp(p)
		return
	}
	p.received++
	p.last = lastRequest{op: op, xid: xid, at: time.Now()}
	if op == OpAuth {
		st.auth(p, xid, d)
		return
	}
	s := p.session
	s.timeout = p.timeout
	st.touch(s)
	switch {
	case op == OpPing:
		p.reply(wire.XidPing, codeOK, nil)
	case op == OpClose:
		st.close(p, xid)
	case op == OpSync:
		st.sync(p, xid, d)
	case op == OpMulti:
		st.multi(p, xid, d)
	case op == OpReconfig:
		st.reconfig(p, xid, d)
	case op == OpCreateContainer && !st.conf.containers:
		st.refuse(p, xid)
	case writes[op]:
		st.write(p, xid, op, d)
	case reads[op] != nil:
		body, err := reads[op](p, d)
		if d.Bad {
			err = codeMarshallingError
		}
		p.result(xid, body, err)
	default:
		st.refuse(p, xid)
	}
}

// refuse answers a request that the server does not know, and, as ZooKeeper
// does, closes the connection.
func (st *state) refuse(p *peer, xid int32) {
	p.replyAt(-1, xid, codeUnimplemented, nil)
	st.hangUp(p)
}

// result sends a body or, if there is an error, its code.
func (p *peer) result(xid int32, body []byte, err error) {
	if err == nil {
		p.reply(xid, codeOK, body)
		return
	}
	c, ok := err.(code)
	if !ok {
		c = codeMarshallingError
	}
	p.reply(xid, c, nil)
}

func (st *state) close(p *peer, xid int32) {
	s := p.session
	s.peer = nil // so that the answer goes first
	st.endSession(s.id)
	p.replyAt(st.zxid, xid, codeOK, nil)
	st.hangUp(p)
}

// sync answers once this client's member has everything.
func (st *state) sync(p *peer, xid int32, d *decoder) {
	path := d.String()
	if d.Bad {
		p.reply(xid, codeMarshallingError, nil)
		return
	}
	p.member.catchUp(st.zxid)
	e := new(encoder)
	e.String(path)
	p.reply(xid, codeOK, e.B)
}

// reconfig is disabled, as it is by default.
func (st *state) reconfig(p *peer, xid int32, d *decoder) {
	for range 3 {
		d.Buffer() // joining, leaving, new members: any may be null
	}
	d.Int64()
	if d.Bad {
		p.result(xid, nil, codeMarshallingError)
		return
	}
	st.answer(p, xid, nil, codeReconfigDisabled)
}

// writes are the requests that change the state, other than multi.
var writes = map[Op]bool{
	OpCreate: true, OpCreate2: true, OpCreateContainer: true, OpCreateTTL: true,
	OpDelete: true, OpSetData: true, OpSetACL: true,
}

// write does one write.
func (st *state) write(p *peer, xid int32, op Op, d *decoder) {
	o := d.operation(op)
	if d.Bad {
		st.answer(p, xid, nil, codeMarshallingError)
		return
	}
	pr := st.prepare(p)
	if err := pr.add(o); err != nil {
		st.answer(p, xid, nil, err)
		return
	}
	stats := st.commit(pr.changes)
	e := new(encoder)
	e.written(op, pr.changes[0], stats[0])
	p.member.catchUp(st.zxid) // a client sees its own writes
	p.reply(xid, codeOK, e.B)
}

// answer is for a write that changes nothing, which is a transaction too.
func (st *state) answer(p *peer, xid int32, body []byte, err error) {
	st.commit(nil)
	p.member.catchUp(st.zxid)
	p.result(xid, body, err)
}

// written is what a write that has succeeded answers.
func (e *encoder) written(op Op, c change, s nodeStat) {
	switch op {
	case OpCreate:
		e.String(c.path)
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		e.String(c.path)
		e.stat(s)
	case OpSetData, OpSetACL:
		e.stat(s)
	}
}
