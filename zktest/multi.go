package zktest

import "github.com/turnstile-go/turnstile/internal/wire"

// multi prepares several writes, or none of them. That it does none is not an
// error of the request's: each write has its own.
func (t *txn) multi(pr *preparation) {
	operations := t.request.body.operations()
	if t.request.body.Bad {
		t.err = codeMarshallingError
		return
	}
	for i, o := range operations {
		err := pr.add(o)
		if err == codeMarshallingError {
			t.err = err
			return
		}
		if err != nil {
			t.failed = failures(len(operations), i, err)
			pr.pending = nil
			return
		}
	}
	t.operations, t.changes = operations, pr.changes
}

// results is what a multi answers.
func (t *txn) results(stats []nodeStat) []byte {
	if t.failed != nil {
		return t.failed
	}
	e := new(encoder)
	for i, o := range t.operations {
		op := o.op
		if op == OpCreateContainer || op == OpCreateTTL {
			op = OpCreate2 // their answers are the same
		}
		e.multiHeader(op, false, codeOK)
		e.written(op, t.changes[i], stats[i])
	}
	e.multiEnd()
	return e.B
}

// operations reads the body of a multi.
func (d *decoder) operations() (all []operation) {
	for {
		op, done := d.multiHeader()
		if d.Bad || done {
			return all
		}
		switch op {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpCheck:
			all = append(all, byFlags(d.operation(op)))
		default:
			d.Bad = true
			return nil
		}
	}
}

// byFlags gives a create within a multi the kind that its flags ask for: there,
// the kind that the request names does not count. But if the flags ask for a
// TTL and the request has none, ZooKeeper stumbles when it gets there.
func byFlags(o operation) operation {
	switch o.op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
	default:
		return o
	}
	named := o.op
	switch o.flags {
	case 4:
		o.op, o.ttl = OpCreateContainer, -1
	case 5, 6:
		o.op = OpCreateTTL
		if named != OpCreateTTL {
			o.op = opMisshapen
		}
	default:
		o.op, o.ttl = OpCreate, -1
	}
	return o
}

// opMisshapen is an operation that fails with codeMarshallingError.
const opMisshapen Op = -2

// failures is the body when operation i has failed: those before it are told
// that they are fine, and those after it that they have not been tried.
func failures(n, i int, err error) []byte {
	e := new(encoder)
	for j := range n {
		c := codeOK
		switch {
		case j == i:
			c = err.(code)
		case j > i:
			c = codeRuntimeInconsistency
		}
		e.multiHeader(opError, false, c)
		e.Int32(int32(c))
	}
	e.multiEnd()
	return e.B
}

// opError is what a failed operation has in place of its kind; so has the end.
const opError Op = wire.OpError

func (e *encoder) multiEnd() { e.multiHeader(opError, true, -1) }

// multiRead does several reads, each of which may fail by itself. They set no
// watches, even if they say so.
func multiRead(p *peer, d *decoder) ([]byte, error) {
	e := new(encoder)
	for {
		op, done := d.multiHeader()
		if done || d.Bad {
			break
		}
		if op != OpGetData && op != OpGetChildren {
			return nil, codeMarshallingError
		}
		path := d.String()
		d.Bool()
		n, err := p.readable(path, permRead)
		if err != nil {
			e.multiHeader(opError, false, err.(code))
			e.Int32(int32(err.(code)))
			continue
		}
		e.multiHeader(op, false, codeOK)
		if op == OpGetData {
			e.Buffer(n.data)
			e.stat(n.told())
		} else {
			e.Strings(n.names())
		}
	}
	e.multiEnd()
	return e.B, nil
}
