package session

import "time"

// State is where a [Manager] stands.
//
//	              ┌──────────────► Closed (from anywhere, by Close)
//	Connecting ─► Connected ◄─► Suspended
//	    ▲             │             │
//	    └─── Lost ◄───┴─────────────┘
type State int

const (
	// Connecting: there is no session, and the manager tries to open one.
	Connecting State = iota
	// Connected: there is a session, and a connection to a server that has it.
	Connected
	// Suspended: there is a session but no connection. What is held under it is
	// held for [Session.Remaining].
	Suspended
	// Lost: the session is gone, with all that was held under it. Connecting
	// follows.
	Lost
	// Closed: Close was called. Nothing follows.
	Closed
)

// String returns the state's name.
func (s State) String() string {
	switch s {
	case Connecting:
		return "Connecting"
	case Connected:
		return "Connected"
	case Suspended:
		return "Suspended"
	case Lost:
		return "Lost"
	case Closed:
		return "Closed"
	}
	return "Unknown"
}

// Change is one step of a [Manager] from a state to another.
type Change struct {
	From, To State
	// Session is the id of the session that the change is about; 0 for none.
	Session int64
	// Err says why, for Lost and Closed; nil otherwise.
	Err error
	// At is when the step was taken.
	At time.Time
}

// canFollow is the transition function: it reports whether a manager in state
// from may go to state to. A step that it refuses is not taken: late news of a
// session that is gone already.
func canFollow(from, to State) bool {
	switch {
	case from == Closed || from == to:
		return false
	case to == Closed:
		return true
	}
	switch from {
	case Connecting:
		return to == Connected
	case Connected:
		return to == Suspended || to == Lost
	case Suspended:
		return to == Connected || to == Lost
	case Lost:
		return to == Connecting
	}
	return false
}
