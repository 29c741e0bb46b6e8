package wire

import "time"

// Events is what a [Conn] tells its session and asks it. The goroutines of zk.Conn make the calls, and the one
// that sends heartbeats calls Owns. They must not block.
type Events interface {
	// Greeted is called with the answer to a handshake that was sent at the given time. If it
	// returns an error, the connection ends before zk.Conn sees the answer.
	Greeted(g Greeting, sent time.Time) error
	// Accepted is called when the server has taken all identities.
	Accepted()
	// Refused is called when the server has refused an identity, with its scheme.
	Refused(scheme string)
	// Answered is called when a request that went through the leader was answered.
	Answered(a Answer)
	// Expired is called when the server says that the session has expired.
	Expired()
	// Closed is called when the server has confirmed closeSession.
	Closed()
	// Broken is called when the connection is given up because of what the server sent on it, or
	// has ended before the server greeted.
	Broken(why error)
	// Owns reports whether the session owns nodes, or may own some.
	Owns() bool
	// Go runs f in a goroutine of the session, unless the session has ended.
	Go(f func())
}

// Answer is what the answer to a request through the leader proves.
type Answer struct {
	Sent time.Time // when the request was sent
	Zxid int64     // the transaction id in the answer
	// Quorum reports whether a quorum agreed. If so, the leader has touched the session at
	// Touched or later.
	Quorum  bool
	Touched time.Time
	// Since is the time between the greeting of this connection and the answer.
	Since time.Duration
}
