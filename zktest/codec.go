package zktest

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// What ZooKeeper calls jute: big-endian numbers, and buffers, strings and lists
// behind their length. The decoder's other half is in frame.go.

// bool reads one byte.
func (d *decoder) bool() bool {
	b := d.bytes(1)
	return len(b) == 1 && b[0] != 0
}

// string reads a string that must be there. Java turns what is not UTF-8 into
// U+FFFD, which is in no valid path.
func (d *decoder) string() string {
	n := d.int32()
	if n < 0 {
		d.bad = true
		return ""
	}
	s := string(d.bytes(int(n)))
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}

// data reads a node's content, which may be null: nil.
func (d *decoder) data() []byte {
	b := d.buffer()
	if b == nil {
		return nil
	}
	return append([]byte{}, b...) // the frame is not kept
}

// list calls element once for each of a list's elements. A null list is empty.
func (d *decoder) list(element func()) {
	n := d.int32()
	if n < -1 {
		d.bad = true
	}
	for ; n > 0 && !d.bad; n-- {
		element()
	}
}

func (d *decoder) strings() (all []string) {
	d.list(func() { all = append(all, d.string()) })
	return all
}

func (d *decoder) acls() (all []aclEntry) {
	d.list(func() { all = append(all, aclEntry{d.int32(), identity{d.string(), d.string()}}) })
	return all
}

// header reads what begins each part of a multi.
func (d *decoder) multiHeader() (op Op, done bool) {
	op, done = Op(d.int32()), d.bool()
	d.int32() // error
	return op, done
}

// An encoder puts a frame together.
type encoder struct{ b []byte }

// newFrame leaves room for the length, which sized fills in.
func newFrame() *encoder { return &encoder{make([]byte, 4, 128)} }

func (e *encoder) int32(n int32) { e.b = binary.BigEndian.AppendUint32(e.b, uint32(n)) }
func (e *encoder) int64(n int64) { e.b = binary.BigEndian.AppendUint64(e.b, uint64(n)) }

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

// buffer writes a length and the bytes; nil is null.
func (e *encoder) buffer(b []byte) {
	if b == nil {
		e.int32(-1)
		return
	}
	e.int32(int32(len(b)))
	e.b = append(e.b, b...)
}

func (e *encoder) string(s string) {
	e.int32(int32(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) strings(all []string) {
	e.int32(int32(len(all)))
	for _, s := range all {
		e.string(s)
	}
}

func (e *encoder) acls(all []aclEntry) {
	e.int32(int32(len(all)))
	for _, a := range all {
		e.int32(a.perms)
		e.string(a.id.scheme)
		e.string(a.id.id)
	}
}

func (e *encoder) stat(s nodeStat) {
	e.int64(s.czxid)
	e.int64(s.mzxid)
	e.int64(s.ctime)
	e.int64(s.mtime)
	e.int32(s.version)
	e.int32(s.cversion)
	e.int32(s.aversion)
	e.int64(s.owner)
	e.int32(s.dataLength)
	e.int32(s.numChildren)
	e.int64(s.pzxid)
}

func (e *encoder) multiHeader(op Op, done bool, err code) {
	e.int32(int32(op))
	e.bool(done)
	e.int32(int32(err))
}

// replyFrame is the answer to a request; an error has no body.
func replyFrame(xid int32, zxid int64, err code, body []byte) []byte {
	e := newFrame()
	e.int32(xid)
	e.int64(zxid)
	e.int32(int32(err))
	e.b = append(e.b, body...)
	return sized(e.b)
}
