package znode

import (
	"github.com/turnstile-go/turnstile/internal/codec"
)

// A Decoder adds to [codec.Decoder] the records that only a server reads.
type Decoder struct{ codec.Decoder }

// Decode returns a decoder of what follows a frame's length.
func Decode(frame []byte) *Decoder { return &Decoder{codec.Decode(frame)} }

// data takes a copy of a node's data, or nil for Java's null.
func (d *Decoder) data() []byte {
	b := d.Buffer()
	if b == nil {
		return nil
	}
	return append([]byte{}, b...) // so that the frame can be freed
}

// ACL takes a list of ACL entries.
func (d *Decoder) ACL() (all []ACLEntry) {
	d.List(func() { all = append(all, ACLEntry{d.Int32(), Identity{d.String(), d.String()}}) })
	return all
}

// An Encoder adds to [codec.Encoder] the records that only a server writes.
type Encoder struct{ codec.Encoder }

// NewFrame returns an encoder that leaves room for the frame's length.
func NewFrame() *Encoder { return &Encoder{*codec.NewFrame()} }

// ACL appends a list of ACL entries.
func (e *Encoder) ACL(all []ACLEntry) {
	e.Int32(int32(len(all)))
	for _, a := range all {
		e.Int32(a.Perms)
		e.String(a.ID.Scheme)
		e.String(a.ID.ID)
	}
}

// Stat appends a stat.
func (e *Encoder) Stat(s Stat) {
	e.Int64(s.czxid)
	e.Int64(s.Mzxid)
	e.Int64(s.ctime)
	e.Int64(s.mtime)
	e.Int32(s.version)
	e.Int32(s.Cversion)
	e.Int32(s.aversion)
	e.Int64(s.owner)
	e.Int32(s.dataLength)
	e.Int32(s.numChildren)
	e.Int64(s.Pzxid)
}

// MultiEnd appends the end of a multi's results.
func (e *Encoder) MultiEnd() { e.MultiHeader(codec.OpError, true, -1) }

// WriteResult appends the answer to a write that has succeeded.
func (e *Encoder) WriteResult(op int32, c Change, s Stat) {
	switch op {
	case codec.OpCreate:
		e.String(c.Path)
	case codec.OpCreate2, codec.OpCreateContainer, codec.OpCreateTTL:
		e.String(c.Path)
		e.Stat(s)
	case codec.OpSetData, codec.OpSetACL:
		e.Stat(s)
	}
}

// ReplyFrame returns the frame that answers a request. Errors have no body.
func ReplyFrame(xid int32, zxid int64, err Code, body []byte) []byte {
	e := NewFrame()
	e.Int32(xid)
	e.Int64(zxid)
	e.Int32(int32(err))
	e.B = append(e.B, body...)
	return e.Frame()
}
