package codec

import "encoding/binary"

const PasswordLength = 16

// Hello is a client's first frame on a connection.
type Hello struct {
	LastZxid      int64 // latest transaction that the client has seen
	TimeoutMillis int32
	Session       int64 // 0: a new session
	Password      []byte
}

func (h Hello) Frame() []byte {
	password := h.Password
	if password == nil {
		password = make([]byte, PasswordLength)
	}
	e := NewFrame()
	e.Int32(0) // protocol version
	e.Int64(h.LastZxid)
	e.Int32(h.TimeoutMillis)
	e.Int64(h.Session)
	e.Buffer(password)
	e.Bool(false) // no read-only server
	return e.Frame()
}

func CloseFrame(xid int32) []byte {
	e := NewFrame()
	e.Int32(xid)
	e.Int32(OpClose)
	return e.Frame()
}

// Identity is that of session.WithAuth.
type Identity struct {
	Scheme     string
	Credential []byte
}

func (id Identity) Frame() []byte {
	e := NewFrame()
	e.Int32(XidAuth)
	e.Int32(OpAuth)
	e.Int32(0)
	e.String(id.Scheme)
	e.String(string(id.Credential))
	return e.Frame()
}

// SASLFrame returns a client's step in an exchange of SASL.
func SASLFrame(xid int32, token []byte) []byte {
	e := NewFrame()
	e.Int32(xid)
	e.Int32(OpSASL)
	e.Buffer(append([]byte{}, token...)) // ZooKeeper takes an empty token, and not null
	return e.Frame()
}

func PingFrame() []byte {
	e := NewFrame()
	e.Int32(XidPing)
	e.Int32(OpPing)
	return e.Frame()
}

// SyncFrame returns a sync: the server has to catch up with the leader.
func SyncFrame(xid int32) []byte {
	e := NewFrame()
	e.Int32(xid)
	e.Int32(OpSync)
	e.String("/")
	return e.Frame()
}

// AgreeFrame returns a check that a node exists. It changes nothing, and a quorum has to agree to it, whether the
// node exists or not, and whatever rights the client has.
func AgreeFrame(xid int32, path string) []byte {
	e := NewFrame()
	e.Int32(xid)
	e.Int32(OpMulti)
	e.MultiHeader(OpCheck, false, -1)
	e.String(path)
	e.Int32(-1) // any version
	e.MultiHeader(OpError, true, -1)
	return e.Frame()
}

// The sizes of what is ahead of the first field.
const (
	RequestHead = 4 + 8     // length, number and kind
	PartHead    = 4 + 1 + 4 // kind, end or not, error
)

func Xid(frame []byte) int32 { return int32(binary.BigEndian.Uint32(frame[4:])) }

func Op(frame []byte) int32 { return int32(binary.BigEndian.Uint32(frame[8:])) }

// Path returns the path that a request names first, or nil.
func Path(frame []byte) []byte {
	at := RequestHead // where its length is
	switch Op(frame) {
	case OpAuth, OpSASL, OpClose:
		return nil
	case OpMulti:
		at += PartHead
	case OpSetWatches:
		at += 8 + 4 // the transaction, and how many paths there are
	}
	if at+4 > len(frame) || int(binary.BigEndian.Uint32(frame[at:])) > len(frame)-at-4 {
		return nil
	}
	return frame[at+4:][:binary.BigEndian.Uint32(frame[at:])]
}
