package zktest

import (
	"io"

	"github.com/turnstile-go/turnstile/internal/wire"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// readFrame reads one frame and returns it with its length in front.
func readFrame(r io.Reader) ([]byte, error) { return wire.ReadFrame(r, wire.MaxFrame) }

// parseConnect reads a client's first frame.
func parseConnect(frame []byte) Request {
	d := znode.Decode(frame)
	d.Int32() // protocol version
	d.Int64() // last zxid seen
	d.Int32() // timeout asked for
	return Request{Op: OpConnect, Session: d.Int64()}
}

// parseConnected reads a server's first frame. A session of 0 is a refusal.
func parseConnected(frame []byte) (session int64, password []byte) {
	d := znode.Decode(frame)
	d.Int32() // protocol version
	d.Int32() // timeout granted
	session = d.Int64()
	return session, append([]byte(nil), d.Buffer()...)
}

// parseRequest reads any later frame of a client.
func parseRequest(frame []byte) Request {
	d := znode.Decode(frame)
	r := Request{Xid: d.Int32(), Op: Op(d.Int32())}
	op := r.Op
	if op == OpMulti || op == OpMultiRead {
		op = Op(d.Int32()) // of its first operation
		d.Bytes(5)         // done, error
	}
	if op.hasPath() {
		r.Path = string(d.Buffer())
	}
	return r
}

// parseReply reads the header of a server's frame, and of a watch event also
// the path.
func parseReply(frame []byte) Request {
	d := znode.Decode(frame)
	r := Request{Xid: d.Int32()}
	if r.Xid == wire.XidEvent {
		d.Int64() // zxid
		d.Int32() // error
		d.Int32() // type of event
		d.Int32() // state
		r.Path = string(d.Buffer())
	}
	return r
}

// connectFrame is a client's first frame, to attach to a session.
func connectFrame(session int64, password []byte, timeoutMillis int32) []byte {
	return wire.Hello{Session: session, Password: password, TimeoutMillis: timeoutMillis}.Frame()
}

// closeFrame is the request that ends the session of its connection.
func closeFrame(xid int32) []byte { return wire.CloseFrame(xid) }
