package hostileservers

import (
	"context"
	"path"
	"slices"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// operation is one of a transaction.
type operation struct {
	op   zktest.Op
	path string // of a create, without the sequence number
}

// operationsOf returns the operations of a transaction that the victim has asked for.
func operationsOf(frame []byte) (ops []operation) {
	d := codec.Decode(frame)
	d.Bytes(8) // xid and op
	for {
		op, done := d.MultiHeader()
		if done || d.Bad {
			return ops
		}
		ops = append(ops, operation{zktest.Op(op), d.String()})
		switch zktest.Op(op) {
		case zktest.OpCreate:
			d.Buffer()
			d.List(func() { d.Int32(); _ = d.String(); _ = d.String() }) // ACL
			d.Int32()
		case zktest.OpSetData:
			d.Buffer()
			d.Int32()
		default:
			d.Int32() // version
		}
	}
}

// madeBy returns the paths of the nodes that a transaction has made, from its answer. Only one of creates
// has them.
func madeBy(r request, frame []byte) (made []string) {
	d := codec.Decode(frame)
	d.Bytes(bodyAt - 4)
	for _, o := range r.ops {
		op, _ := d.MultiHeader()
		if o.op != zktest.OpCreate || zktest.Op(op) != zktest.OpCreate {
			return nil
		}
		made = append(made, d.String())
	}
	return made
}

// has reports whether a request is one of an operation, or a transaction with it.
func (r request) has(op zktest.Op) bool {
	return r.op == op || slices.ContainsFunc(r.ops, func(o operation) bool { return o.op == op })
}

// isTransaction reports whether a request is a transaction that makes or deletes nodes. Heartbeats are
// transactions too.
func isTransaction(r request) bool {
	return r.op == zktest.OpMulti && (r.has(zktest.OpCreate) || r.has(zktest.OpDelete))
}

func deletes(r request) bool { return r.has(zktest.OpDelete) }

// inconsistent is the code of the operations behind the one that was refused.
const inconsistent = 0xfffffffe

// refusalOf returns an answer to a request that says an error. That to a transaction says so in the results
// of its operations: its first was refused.
func refusalOf(r request, frame []byte, code uint32) [][]byte {
	if r.op != zktest.OpMulti {
		return refusal(frame, code)
	}
	e := codec.Encoder{B: slices.Clone(frame[:bodyAt])}
	for range r.ops {
		e.MultiHeader(codec.OpError, false, int32(code))
		e.Int32(int32(code))
		code = inconsistent
	}
	e.MultiHeader(codec.OpError, true, -1)
	return [][]byte{resized(e.B)}
}

// losing is a lie: requests that fit are carried out, and their replies lost.
func losing(fits func(request) bool) *lie {
	return &lie{answer: func(_ *link, r request, frame []byte) [][]byte {
		if fits(r) {
			return refusalOf(r, frame, connectionLoss)
		}
		return [][]byte{frame}
	}}
}

// hiding is a lie: the listings of a directory do not show our nodes.
func hiding(dir string) *lie {
	return listing(func(l *link, r request, names []string) []string {
		return slices.DeleteFunc(names, func(name string) bool { return r.path == dir && slices.Contains(l.made, name) })
	})
}

// someFound returns a lie: transactions are lost, and after that some of their nodes are listed, but not
// those of the last directory.
func someFound() *lie {
	var lost []operation
	lists := listing(func(_ *link, r request, names []string) []string {
		for _, o := range lost[:max(0, len(lost)-1)] {
			if path.Dir(o.path) == r.path {
				names = append(names, path.Base(o.path)+"0000001000")
			}
		}
		return names
	})
	return &lie{swallow: creates, answer: func(l *link, r request, frame []byte) [][]byte {
		if creates(r) {
			lost = r.ops
			return refusalOf(r, frame, connectionLoss)
		}
		return lists.answer(l, r, frame)
	}}
}

// getAndRelease takes the lock and gives it back, which must work, and waits.
func getAndRelease(w *world, ctx context.Context, m *session.Manager) error {
	g, err := w.lock(m).get(ctx, 0)
	if err != nil {
		return err
	}
	if err := g.Release(ctx); err != nil {
		w.Error(err)
	}
	w.empty()
	<-ctx.Done()
	return ctx.Err()
}
