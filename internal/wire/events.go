package wire

import "time"

// Events is what a [Conn] tells its session and asks it. The goroutine that reads makes the calls, in the order of
// the stream and without a lock. Both goroutines call Owns. No call may block.
type Events interface {
	// Greeted is called with the answer to a handshake that was sent at the given time. The connection ends if
	// it returns an error. Otherwise the connection has the session from now on.
	Greeted(g Greeting, sent time.Time) error
	// Accepted is called when the server has taken all identities.
	Accepted()
	// Refused is called when the server has refused an identity, with its scheme.
	Refused(scheme string)
	// Answered is called when a request that went through the leader was answered.
	Answered(a Answered)
	// Fired is called with the event of a watch: its kind, such as EventDeleted, and its path.
	Fired(kind int32, path string)
	// Expired is called when the server says that the session has expired.
	Expired()
	// Closed is called when the server has confirmed closeSession.
	Closed()
	// Owns reports whether the session owns nodes, or may own some.
	Owns() bool
}

// Answered is what the answer to a request through the leader proves.
type Answered struct {
	Sent time.Time // when the request was sent
	Zxid int64     // the transaction id in the answer
	// Quorum reports whether a quorum agreed. If so, the leader has touched the session at
	// Touched or later.
	Quorum  bool
	Touched time.Time
	// Since is the time between the greeting of this connection and the answer.
	Since time.Duration
}
