package zktest

import "github.com/turnstile-go/turnstile/internal/wire"

// The encoding itself is package wire's. Here is what only a server has to put into frames and take
// out of them.

// A decoder takes a frame apart. Past the end of it, it returns zeros: the proxy passes on a
// frame that it does not understand.
type decoder struct{ wire.Decoder }

// decode starts behind the frame's length.
func decode(frame []byte) *decoder { return &decoder{wire.Decode(frame)} }

// data reads a node's content, which may be null: nil.
func (d *decoder) data() []byte {
	b := d.Buffer()
	if b == nil {
		return nil
	}
	return append([]byte{}, b...) // the frame is not kept
}

func (d *decoder) acls() (all []aclEntry) {
	d.List(func() { all = append(all, aclEntry{d.Int32(), identity{d.String(), d.String()}}) })
	return all
}

// multiHeader reads what begins each part of a multi.
func (d *decoder) multiHeader() (op Op, done bool) {
	kind, done := d.MultiHeader()
	return Op(kind), done
}

// An encoder puts a frame together.
type encoder struct{ wire.Encoder }

// newFrame leaves room for the length, which Frame fills in.
func newFrame() *encoder { return &encoder{*wire.NewFrame()} }

func (e *encoder) acls(all []aclEntry) {
	e.Int32(int32(len(all)))
	for _, a := range all {
		e.Int32(a.perms)
		e.String(a.id.scheme)
		e.String(a.id.id)
	}
}

func (e *encoder) stat(s nodeStat) {
	e.Int64(s.czxid)
	e.Int64(s.mzxid)
	e.Int64(s.ctime)
	e.Int64(s.mtime)
	e.Int32(s.version)
	e.Int32(s.cversion)
	e.Int32(s.aversion)
	e.Int64(s.owner)
	e.Int32(s.dataLength)
	e.Int32(s.numChildren)
	e.Int64(s.pzxid)
}

func (e *encoder) multiHeader(op Op, done bool, err code) {
	e.MultiHeader(int32(op), done, int32(err))
}

// replyFrame is the answer to a request; an error has no body.
func replyFrame(xid int32, zxid int64, err code, body []byte) []byte {
	e := newFrame()
	e.Int32(xid)
	e.Int64(zxid)
	e.Int32(int32(err))
	e.B = append(e.B, body...)
	return e.Frame()
}
