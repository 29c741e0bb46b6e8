package quorum

import (
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// multi prepares all operations of a multi, or none of them. If one fails, the request itself still
// succeeds: its answer has a code for each operation.
func (t *txn) multi(pr *znode.Preparation, r *znode.Release) {
	operations := t.request.body.Operations(r)
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

// results returns the body of the answer to a multi.
func (t *txn) results(stats []znode.Stat) []byte {
	if t.failed != nil {
		return t.failed
	}
	e := new(znode.Encoder)
	for i, o := range t.operations {
		op := o.Op
		if op == codec.OpCreateContainer || op == codec.OpCreateTTL {
			op = codec.OpCreate2 // their answers have the same format
		}
		e.MultiHeader(op, false, int32(znode.CodeOK))
		e.WriteResult(op, t.changes[i], stats[i])
	}
	e.MultiEnd()
	return e.B
}

// failures returns the body of the answer if operation i has failed. The operations before it get the
// code for success, and those after it the code for operations that were not tried.
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
		e.MultiHeader(codec.OpError, false, int32(c))
		e.Int32(int32(c))
	}
	e.MultiEnd()
	return e.B
}

// multiRead answers several reads, each of which can fail by itself. They set no watches, even if they ask for them.
func multiRead(p *Peer, d *znode.Decoder) ([]byte, error) {
	e := new(znode.Encoder)
	for {
		op, done := d.MultiHeader()
		if done || d.Bad {
			break
		}
		if op != codec.OpGetData && op != codec.OpGetChildren {
			return nil, znode.CodeMarshallingError
		}
		path := d.String()
		d.Bool()
		n, err := p.readable(path, znode.PermRead)
		if err != nil {
			e.MultiHeader(codec.OpError, false, int32(err.(znode.Code)))
			e.Int32(int32(err.(znode.Code)))
			continue
		}
		e.MultiHeader(op, false, int32(znode.CodeOK))
		if op == codec.OpGetData {
			e.Buffer(n.Data)
			e.Stat(n.ClientStat())
		} else {
			e.Strings(n.Names())
		}
	}
	e.MultiEnd()
	return e.B, nil
}
