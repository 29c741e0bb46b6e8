package hooks

import "time"

// State is the state of a session.Manager. Package session has a diagram.
type State int

const (
	// Connecting: there is no session. The manager is trying to open one.
	Connecting State = iota
	// Connected: there is a session, and a connection to a server that has it.
	Connected
	// Suspended: there is a session but no connection. Locks held under the
	// session stay held for Remaining of a session.Session.
	Suspended
	// Lost: the session is gone, with everything that was held under it.
	// Connecting follows.
	Lost
	// Closed: Close was called. Nothing follows.
	Closed
)

// String returns the state's name in lower case, as lockz and otelzk show it: connected.
func (s State) String() string {
	switch s {
	case Connecting:
		return "connecting"
	case Connected:
		return "connected"
	case Suspended:
		return "suspended"
	case Lost:
		return "lost"
	case Closed:
		return "closed"
	}
	return "unknown"
}

// Change is a step of a session.Manager from one state to another.
type Change struct {
	From, To State
	// Session is the id of the session that the change is about, or 0 if there is none.
	Session int64
	// Err is the cause of a change to Suspended, Lost or Closed, and nil otherwise. That of a
	// change to Suspended says which server the connection was to, and how it ended.
	Err error
	// At is the time of the change.
	At time.Time
}
