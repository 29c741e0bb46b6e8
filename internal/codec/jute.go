// Package codec is ZooKeeper's client protocol: its numbers, its encoding, and the frames of requests and answers.
// The client and the servers of package zktest use it.
//
// ZooKeeper calls its encoding jute: numbers are big-endian, and buffers, strings and lists follow their length. A
// frame is a length of four bytes and a body.
package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// MaxFrame is the longest frame that this module reads: a list of half a million contenders fits. Servers read 1 MiB
// (jute.maxbuffer).
const MaxFrame = 64 << 20

// ReadFrame reads one frame and returns it with its length in front. It fails if the body has more than limit bytes.
func ReadFrame(r io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if int64(size) > int64(limit) {
		return nil, fmt.Errorf("a frame of %d bytes, more than %d", size, limit)
	}
	frame := make([]byte, 4+size)
	copy(frame, head[:])
	if _, err := io.ReadFull(r, frame[4:]); err != nil {
		return nil, err
	}
	return frame, nil
}

// Encoder builds a frame, between [NewFrame] and [Encoder.Frame]. The zero value encodes a body without a length.
type Encoder struct{ B []byte }

// NewFrame leaves room for the frame's length.
func NewFrame() *Encoder { return &Encoder{make([]byte, 4, 128)} }

// Frame fills in the length, and returns the frame.
func (e *Encoder) Frame() []byte {
	binary.BigEndian.PutUint32(e.B, uint32(len(e.B)-4))
	return e.B
}

func (e *Encoder) Int32(n int32) { e.B = binary.BigEndian.AppendUint32(e.B, uint32(n)) }

func (e *Encoder) Int64(n int64) { e.B = binary.BigEndian.AppendUint64(e.B, uint64(n)) }

func (e *Encoder) Bool(v bool) {
	if v {
		e.B = append(e.B, 1)
	} else {
		e.B = append(e.B, 0)
	}
}

// Buffer appends a length and the bytes; nil is Java's null.
func (e *Encoder) Buffer(b []byte) {
	if b == nil {
		e.Int32(-1)
		return
	}
	e.Int32(int32(len(b)))
	e.B = append(e.B, b...)
}

func (e *Encoder) String(s string) {
	e.Int32(int32(len(s)))
	e.B = append(e.B, s...)
}

func (e *Encoder) Strings(all []string) {
	e.Int32(int32(len(all)))
	for _, s := range all {
		e.String(s)
	}
}

// MultiHeader appends the header of one operation of a multi, or of one result.
func (e *Encoder) MultiHeader(op int32, done bool, code int32) {
	e.Int32(op)
	e.Bool(done)
	e.Int32(code)
}

// Decoder decodes a frame. Past the end it returns zeros and sets Bad.
type Decoder struct {
	Rest []byte
	Bad  bool // something was missing or invalid
}

// Decode returns a decoder for what follows a frame's length.
func Decode(frame []byte) Decoder { return Decoder{Rest: frame[4:]} }

// whole fails if the body was too short, or has not ended.
func (d *Decoder) whole() error {
	switch {
	case d.Bad:
		return errors.New("it ends too early, or has an impossible length within it")
	case len(d.Rest) > 0:
		return fmt.Errorf("%d bytes are left over", len(d.Rest))
	}
	return nil
}

func (d *Decoder) Bytes(n int) []byte {
	if n < 0 || n > len(d.Rest) {
		d.Rest, d.Bad = nil, true
		return nil
	}
	b := d.Rest[:n:n] // an append must not reach the rest, which others may share
	d.Rest = d.Rest[n:]
	return b
}

func (d *Decoder) Int32() int32 {
	if b := d.Bytes(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *Decoder) Int64() int64 {
	if b := d.Bytes(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (d *Decoder) Bool() bool {
	b := d.Bytes(1)
	return len(b) == 1 && b[0] != 0
}

// Buffer takes a length and that many bytes. Java's null is nil.
func (d *Decoder) Buffer() []byte {
	n := d.Int32()
	if n == -1 {
		return nil
	}
	return d.Bytes(int(n))
}

// String takes a string, which must not be null. Like Java, it turns bytes that are not UTF-8 into U+FFFD.
func (d *Decoder) String() string {
	n := d.Int32()
	if n < 0 {
		d.Bad = true
		return ""
	}
	s := string(d.Bytes(int(n)))
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}

// List calls element once for each element. A null list is empty.
func (d *Decoder) List(element func()) {
	n := d.Int32()
	if n < -1 {
		d.Bad = true
	}
	for ; n > 0 && !d.Bad; n-- {
		element()
	}
}

func (d *Decoder) Strings() (all []string) {
	if n := (&Decoder{Rest: d.Rest}).Int32(); n > 0 {
		all = make([]string, 0, min(int(n), len(d.Rest)/4)) // each has a length at least
	}
	d.List(func() { all = append(all, d.String()) })
	return all
}

func (d *Decoder) MultiHeader() (op int32, done bool) {
	op, done = d.Int32(), d.Bool()
	d.Int32() // error
	return op, done
}
