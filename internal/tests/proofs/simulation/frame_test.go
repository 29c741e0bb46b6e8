package simulation

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest"
)

// readFrame reads one frame of ZooKeeper's protocol, with its length.
func readFrame(r io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	frame := append(head, make([]byte, binary.BigEndian.Uint32(head))...)
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}

// request is what a frame to the server asks for.
type request struct {
	xid  int32
	op   zktest.Op
	path string
	key  string // equal for those that ask for the same
	// burst numbers the requests of a connection that arrive together: the same request twice
	burst int
	watch bool  // a listing that sets a watch
	stale stale // how far behind the server is that answers
}

func parseRequest(frame []byte, first bool) request {
	if first {
		return request{op: zktest.OpConnect, key: "connect"}
	}
	r := request{
		xid: int32(binary.BigEndian.Uint32(frame[4:])),
		op:  zktest.Op(binary.BigEndian.Uint32(frame[8:])),
	}
	body := frame[12:]
	switch r.op {
	case zktest.OpPing, zktest.OpClose, zktest.OpAuth:
		r.key = fmt.Sprint(r.op, " ")
		return r
	case zktest.OpMulti:
		r.key = fmt.Sprint(r.op, " ", multiKey(body))
		return r
	case zktest.OpSetWatches:
		d := codec.Decoder{Rest: body}
		d.Int64() // the last transaction seen
		r.key = fmt.Sprint(r.op, " ", d.Strings())
		return r
	}
	if n := int(binary.BigEndian.Uint32(body)); n <= len(body)-4 {
		r.path = string(body[4 : 4+n])
	}
	// The data of a create says which process made it: no part of the key.
	r.key = fmt.Sprint(r.op, " ", r.path)
	if r.op == zktest.OpGetData {
		r.key += fmt.Sprint(" ", body[len(body)-1]) // with a watch or without
	}
	if r.op == zktest.OpGetChildren2 && body[len(body)-1] != 0 {
		r.watch = true
		r.key += " watch"
	}
	return r
}

// multiKey names the operations of a multi and their paths.
func multiKey(body []byte) string {
	d := codec.Decoder{Rest: body}
	var ops []string
	for !d.Bad {
		op, done := d.MultiHeader()
		if done {
			break
		}
		ops = append(ops, fmt.Sprint(zktest.Op(op), " ", d.String()))
		switch op {
		case codec.OpCreate, codec.OpCreateContainer:
			d.Buffer()
			d.List(func() { d.Int32(); _ = d.String(); _ = d.String() })
			d.Int32() // flags
		case codec.OpSetData:
			d.Buffer()
			d.Int32() // version
		case codec.OpDelete, codec.OpCheck:
			d.Int32() // version
		default:
			panic(fmt.Sprint("an operation of a multi that the simulation does not know: ", op))
		}
	}
	return strings.Join(ops, ", ")
}

// rank orders the frames that are sent at one instant.
func (r request) rank() int {
	switch r.op {
	case zktest.OpConnect:
		return 0
	case zktest.OpAuth:
		return 1
	case zktest.OpClose:
		return 3
	}
	return 2
}

// forgetSession turns a handshake for a session into one for a new session.
func forgetSession(frame []byte) {
	const session = 4 + 4 + 8 + 4
	clear(frame[session:min(len(frame), session+8)])
}

// handshakeSession returns the session that a handshake asks for.
func handshakeSession(frame []byte) int64 {
	return int64(binary.BigEndian.Uint64(frame[20:]))
}

// answeredSession returns the session that the answer to a handshake grants, or 0.
func answeredSession(frame []byte) int64 {
	const session = 4 + 4 + 4
	if len(frame) < session+8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(frame[session:]))
}

// parseReply returns the request's number and the error code of a frame from the server;
// for a watch event, its type in place of the code, and the path.
func parseReply(frame []byte) (xid, code int32, path string) {
	if len(frame) < 20 {
		return 0, 0, ""
	}
	xid = int32(binary.BigEndian.Uint32(frame[4:]))
	code = int32(binary.BigEndian.Uint32(frame[16:]))
	if xid == -1 {
		code = int32(binary.BigEndian.Uint32(frame[20:]))
		n := int(binary.BigEndian.Uint32(frame[28:]))
		path = string(frame[32 : 32+n])
	}
	return xid, code, path
}
