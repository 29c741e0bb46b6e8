package zktest

import (
	"encoding/binary"
	"fmt"
	"io"
)

// maxFrame is the longest frame the proxy passes on. A server's own limit
// (jute.maxbuffer) is 1 MiB for requests; replies may be longer.
const maxFrame = 16 << 20

// xidNotification is what a watch event has in place of a request's number.
const xidNotification = -1

// readFrame reads one frame and returns it whole, its four bytes of length
// included, so that it can be passed on with a single write.
func readFrame(r io.Reader) ([]byte, error) { return readFrameUpTo(r, maxFrame) }

// readFrameUpTo is readFrame with another limit.
func readFrameUpTo(r io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if int64(size) > int64(limit) {
		return nil, fmt.Errorf("zktest: a frame of %d bytes, more than %d", size, limit)
	}
	frame := make([]byte, 4+size)
	copy(frame, head[:])
	if _, err := io.ReadFull(r, frame[4:]); err != nil {
		return nil, err
	}
	return frame, nil
}

// A decoder takes a frame apart. Past the end of it, it returns zeros: a frame
// that is not understood is passed on all the same.
type decoder struct {
	rest []byte
	bad  bool // something was not there
}

// decode starts behind the frame's length.
func decode(frame []byte) *decoder { return &decoder{rest: frame[4:]} }

func (d *decoder) bytes(n int) []byte {
	if n < 0 || n > len(d.rest) {
		d.rest, d.bad = nil, true
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) int32() int32 {
	if b := d.bytes(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) int64() int64 {
	if b := d.bytes(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// buffer reads a length and that many bytes. -1 is Java's null.
func (d *decoder) buffer() []byte {
	n := d.int32()
	if n == -1 {
		return nil
	}
	return d.bytes(int(n))
}

// parseConnect reads a client's first frame.
func parseConnect(frame []byte) Request {
	d := decode(frame)
	d.int32() // protocol version
	d.int64() // last zxid seen
	d.int32() // timeout asked for
	return Request{Op: OpConnect, Session: d.int64()}
}

// parseConnected reads a server's first frame. A session of 0 is a refusal.
func parseConnected(frame []byte) (session int64, password []byte) {
	d := decode(frame)
	d.int32() // protocol version
	d.int32() // timeout granted
	session = d.int64()
	return session, append([]byte(nil), d.buffer()...)
}

// parseRequest reads any later frame of a client.
func parseRequest(frame []byte) Request {
	d := decode(frame)
	r := Request{Xid: d.int32(), Op: Op(d.int32())}
	op := r.Op
	if op == OpMulti || op == OpMultiRead {
		op = Op(d.int32()) // of its first operation
		d.bytes(5)         // done, error
	}
	if op.hasPath() {
		r.Path = string(d.buffer())
	}
	return r
}

// parseReply reads the header of a server's frame, and of a watch event also
// the path.
func parseReply(frame []byte) Request {
	d := decode(frame)
	r := Request{Xid: d.int32()}
	if r.Xid == xidNotification {
		d.int64() // zxid
		d.int32() // error
		d.int32() // type of event
		d.int32() // state
		r.Path = string(d.buffer())
	}
	return r
}

// connectFrame is a client's first frame, to attach to a session.
func connectFrame(session int64, password []byte, timeoutMillis int32) []byte {
	b := make([]byte, 4, 64)
	b = binary.BigEndian.AppendUint32(b, 0) // protocol version
	b = binary.BigEndian.AppendUint64(b, 0) // last zxid seen
	b = binary.BigEndian.AppendUint32(b, uint32(timeoutMillis))
	b = binary.BigEndian.AppendUint64(b, uint64(session))
	b = binary.BigEndian.AppendUint32(b, uint32(len(password)))
	b = append(b, password...)
	b = append(b, 0) // not read-only
	return sized(b)
}

// closeFrame is the request that ends the session of its connection.
func closeFrame(xid int32) []byte {
	b := make([]byte, 4, 12)
	b = binary.BigEndian.AppendUint32(b, uint32(xid))
	op := OpClose
	b = binary.BigEndian.AppendUint32(b, uint32(op))
	return sized(b)
}

// sized fills in the length of a frame.
func sized(frame []byte) []byte {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}
