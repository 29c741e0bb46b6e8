package wire

// PasswordLength is the length of the secret that a server gives with each session.
const PasswordLength = 16

// Hello is a client's first frame on a connection.
type Hello struct {
	LastZxid      int64 // the latest transaction that the client has seen
	TimeoutMillis int32 // the session timeout to ask for
	Session       int64 // 0 asks for a new one
	Password      []byte
}

// Frame returns the hello as a frame.
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
	e.Bool(false) // a server that is read-only will not do
	return e.Frame()
}

// CloseFrame is the request that ends the session of its connection.
func CloseFrame(xid int32) []byte {
	e := NewFrame()
	e.Int32(xid)
	e.Int32(OpClose)
	return e.Frame()
}

// AuthFrame presents an identity.
func AuthFrame(scheme string, credential []byte) []byte {
	e := NewFrame()
	e.Int32(XidAuth)
	e.Int32(OpAuth)
	e.Int32(0) // type: always 0
	e.String(scheme)
	e.Int32(int32(len(credential)))
	e.B = append(e.B, credential...)
	return e.Frame()
}

// pingFrame is a ping as zk.Conn sends it.
func pingFrame() []byte {
	e := NewFrame()
	e.Int32(XidPing)
	e.Int32(OpPing)
	return e.Frame()
}

// syncFrame asks the server to catch up with the leader.
func syncFrame(xid int32) []byte {
	e := NewFrame()
	e.Int32(xid)
	e.Int32(OpSync)
	e.String("/")
	return e.Frame()
}

// agreeFrame is a transaction that changes nothing: a check of the root, which is there. A
// quorum has to agree to it, whatever rights we have.
func agreeFrame(xid int32) []byte {
	e := NewFrame()
	e.Int32(xid)
	e.Int32(OpMulti)
	e.MultiHeader(OpCheck, false, -1)
	e.String("/")
	e.Int32(-1) // any version
	e.MultiHeader(OpError, true, -1)
	return e.Frame()
}
