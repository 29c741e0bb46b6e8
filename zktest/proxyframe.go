package zktest

import (
	"io"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// readFrame reads a frame and returns it with its length in front.
func readFrame(r io.Reader) ([]byte, error) { return codec.ReadFrame(r, codec.MaxFrame) }

// parseConnect parses a client's first frame.
func parseConnect(frame []byte) Request {
	d := znode.Decode(frame)
	d.Int32() // protocol version
	d.Int64() // last zxid seen
	d.Int32() // timeout asked for
	return Request{Op: OpConnect, Session: d.Int64()}
}

// parseConnected parses a server's first frame. A session of 0 says that the session has expired.
func parseConnected(frame []byte) (session int64, password []byte) {
	d := znode.Decode(frame)
	d.Int32() // protocol version
	d.Int32() // timeout granted
	session = d.Int64()
	return session, append([]byte(nil), d.Buffer()...)
}

// parseRequest parses any later frame of a client.
func parseRequest(frame []byte) Request {
	d := znode.Decode(frame)
	r := Request{Xid: d.Int32(), Op: Op(d.Int32())}
	op := r.Op
	if op == OpMulti || op == OpMultiRead {
		op = Op(d.Int32()) // of its first operation
		d.Bytes(5)         // done, error
	}
	switch {
	case op.hasPath():
		r.Path = string(d.Buffer())
	case op == OpSetWatches, op == OpSetWatches2:
		d.Int64() // last zxid seen
		if d.Int32() > 0 {
			r.Path = string(d.Buffer())
		}
	}
	return r
}

// parseReply parses the header of a server's frame, and the path of a watch event.
func parseReply(frame []byte) Request {
	d := znode.Decode(frame)
	r := Request{Xid: d.Int32()}
	if r.Xid == codec.XidEvent {
		d.Int64() // zxid
		d.Int32() // error
		d.Int32() // type of event
		d.Int32() // state
		r.Path = string(d.Buffer())
	}
	return r
}
