package wire

// PasswordLength is the length of the password that a server issues with each session.
const PasswordLength = 16

// Hello is a client's first frame on a connection.
type Hello struct {
	LastZxid      int64 // the latest transaction that the client has seen
	TimeoutMillis int32 // the session timeout to ask for
	Session       int64 // 0 asks for a new session
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
	e.Bool(false) // do not accept a read-only server
	return e.Frame()
}

// CloseFrame returns the request that closes the session of its connection.
func CloseFrame(xid int32) []byte {
	e := NewFrame()
	e.Int32(xid)
	e.Int32(OpClose)
	return e.Frame()
}

// AuthFrame returns the request that presents an identity.
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

// pingFrame returns a ping.
func pingFrame() []byte {
	e := NewFrame()
	e.Int32(XidPing)
	e.Int32(OpPing)
	return e.Frame()
}

// syncFrame returns a sync: the server has to catch up with the leader.
func syncFrame(xid int32) []byte {
	e := NewFrame()
	e.Int32(xid)
	e.Int32(OpSync)
	e.String("/")
	return e.Frame()
}

// agreeFrame returns a transaction that changes nothing: a check that the root exists. A quorum
// has to agree to it, whatever rights the client has.
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
