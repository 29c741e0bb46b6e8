package quorum

import (
	"github.com/turnstile-go/turnstile/internal/wire"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// multi prepares several writes, or none of them. That it does none is not an
// error of the request's: each write has its own.
func (t *txn) multi(pr *znode.Preparation) {
	operations := t.request.body.Operations()
	if t.request.body.Bad {
		t.err = znode.CodeMarshallingError
		return
	}
	for i, o := range operations {
		err := pr.Add(o)
		if err == znode.CodeMarshallingError {
			t.err = err
			return
		}
		if err != nil {
			t.failed = failures(len(operations), i, err)
			pr.Pending = nil
			return
		}
	}
	t.operations, t.changes = operations, pr.Changes
}

// results is what a multi answers.
func (t *txn) results(stats []znode.Stat) []byte {
	if t.failed != nil {
		return t.failed
	}
	e := new(znode.Encoder)
	for i, o := range t.operations {
		op := o.Op
		if op == wire.OpCreateContainer || op == wire.OpCreateTTL {
			op = wire.OpCreate2 // their answers are the same
		}
		e.MultiHeader(op, false, int32(znode.CodeOK))
		e.WriteResult(op, t.changes[i], stats[i])
	}
	e.MultiEnd()
	return e.B
}

// failures is the body when operation i has failed: those before it are told
// that they are fine, and those after it that they have not been tried.
func failures(n, i int, err error) []byte {
	e := new(znode.Encoder)
	for j := range n {
		c := znode.CodeOK
		switch {
		case j == i:
			c = err.(znode.Code)
		case j > i:
			c = znode.CodeRuntimeInconsistency
		}
		e.MultiHeader(wire.OpError, false, int32(c))
		e.Int32(int32(c))
	}
	e.MultiEnd()
	return e.B
}

// multiRead does several reads, each of which may fail by itself. They set no
// watches, even if they say so.
func multiRead(p *Peer, d *znode.Decoder) ([]byte, error) {
	e := new(znode.Encoder)
	for {
		op, done := d.MultiHeader()
		if done || d.Bad {
			break
		}
		if op != wire.OpGetData && op != wire.OpGetChildren {
			return nil, znode.CodeMarshallingError
		}
		path := d.String()
		d.Bool()
		n, err := p.readable(path, znode.PermRead)
		if err != nil {
			e.MultiHeader(wire.OpError, false, int32(err.(znode.Code)))
			e.Int32(int32(err.(znode.Code)))
			continue
		}
		e.MultiHeader(op, false, int32(znode.CodeOK))
		if op == wire.OpGetData {
			e.Buffer(n.Data)
			e.Stat(n.ClientStat())
		} else {
			e.Strings(n.Names())
		}
	}
	e.MultiEnd()
	return e.B, nil
}
