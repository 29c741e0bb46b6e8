package lockz

import "time"

// The types of this file are the page as JSON. docs/lockz.md has the names for users, who decode the fields that they want.
// Times are by the clock of this process. Numbers of seconds have fractions, down to a millisecond.

// pageJSON is the page.
type pageJSON struct {
	// ID is host/pid of this process, as in the nodes of its locks.
	ID string `json:"id"`
	// Time is when the page was made.
	Time time.Time `json:"time"`
	// Managers are the managers in the order in which Handler was given them.
	Managers []managerJSON `json:"managers"`
}

// managerJSON is a session.Manager with all that its locks hold and wait for.
type managerJSON struct {
	// Ensemble is the connect string of the manager, with the chroot.
	Ensemble string `json:"ensemble"`
	// State is the name of the manager's session.State: connecting, connected, suspended, lost or
	// closed.
	State string `json:"state"`
	// StateSince is the time of the last change of state. It is omitted if the state has not
	// changed since Recording.
	StateSince time.Time `json:"state_since,omitzero"`
	// Server is the host and port of the server that the session is connected to, or was connected
	// to last. It is "" if there is no session.
	Server string `json:"server,omitempty"`
	// Failure is why there is no connection, as far as that is known.
	Failure string `json:"failure,omitempty"`
	// TimeoutAskedSeconds is the session timeout that the manager asks the servers for.
	TimeoutAskedSeconds float64 `json:"timeout_asked_seconds"`
	// Session is the live session, or nil if there is none.
	Session *sessionJSON `json:"session,omitempty"`

	// Recording is when Handler was called for this manager for the first time. The page knows
	// nothing of what began earlier.
	Recording time.Time `json:"recording"`
	// Holds are the locks that are held, the oldest hold first.
	Holds []holdJSON `json:"holds"`
	// Waits are the acquisitions under way, the oldest first.
	Waits []waitJSON `json:"waits"`
	// Losses are the last 20 holds that were lost, the latest first. A hold that ended because the
	// manager was closed is not a loss.
	Losses []lossJSON `json:"losses"`
	// LossCount is how many holds were lost since Recording.
	LossCount int `json:"loss_count"`
	// SessionLossCount is how many sessions were lost since Recording.
	SessionLossCount int `json:"session_loss_count"`
	// LastSessionLoss is the last session that was lost since Recording, or nil if none was.
	LastSessionLoss *sessionLossJSON `json:"last_session_loss,omitempty"`
}

// sessionJSON is a live ZooKeeper session.
type sessionJSON struct {
	// ID is the session id in hexadecimal digits, as in the logs.
	ID string `json:"id"`
	// TimeoutSeconds is the session timeout that the servers granted.
	TimeoutSeconds float64 `json:"timeout_seconds"`
	// RemainingSeconds is how long the holds of this session are certain if no server answers from
	// now on.
	RemainingSeconds float64 `json:"remaining_seconds"`
}

// holdJSON is a lock that this process holds.
type holdJSON struct {
	// Kind is mutex, election, read, write, semaphore, the name of a queue.Kind of the
	// program's own, or gate: the lock that guards entry to a semaphore in Curator's layout.
	Kind string `json:"kind"`
	// Name is the name of the option WithName, such as that of package zklock, or "".
	Name string `json:"name,omitempty"`
	// Path is the lock's directory, below the chroot.
	Path string `json:"path"`
	// Node is the path of the holder's node.
	Node string `json:"node"`
	// Weight is how many leases of a semaphore are held at once. It is 1 for other locks.
	Weight int `json:"weight"`
	// Since is the time of the grant.
	Since time.Time `json:"since"`
	// Seconds is how long the lock has been held.
	Seconds float64 `json:"seconds"`
	// Token is the fencing token, or 0 if the process does not know it yet.
	Token int64 `json:"token,omitempty"`
	// RemainingSeconds is that of the session.
	RemainingSeconds float64 `json:"remaining_seconds"`
	// Label is the label of queue.WithLabel, or "".
	Label string `json:"label,omitempty"`
	// Traceparent is the W3C traceparent of the acquisition, as the hooks of session.WithTrace give it, or "".
	Traceparent string `json:"traceparent,omitempty"`
}

// waitJSON is an acquisition under way.
type waitJSON struct {
	// Kind is that of Hold.
	Kind string `json:"kind"`
	// Name is that of Hold.
	Name string `json:"name,omitempty"`
	// Path is the lock's directory, below the chroot.
	Path string `json:"path"`
	// Weight is how many leases of a semaphore are asked for at once. It is 1 for other locks.
	Weight int `json:"weight"`
	// Try says that the call, such as TryLock, waits for the servers only.
	Try bool `json:"try,omitempty"`
	// Since is when the acquisition began.
	Since time.Time `json:"since"`
	// Seconds is how long that is ago.
	Seconds float64 `json:"seconds"`
	// Behind is the holder, or the nearest contender ahead if this process does not know which
	// contender holds the lock. It is nil if the acquisition waits for none, or not
	// yet: it waits for a session or for an answer of the servers, or for this process only.
	Behind *behindJSON `json:"behind,omitempty"`
	// AheadHere is how many acquisitions of this process come first and have no place of their own
	// in the queue on the servers: goroutines that share a place (WithLocalHandover). They are not
	// counted in Behind.Ahead.
	AheadHere int `json:"ahead_here,omitempty"`
	// Label is the label of queue.WithLabel, or "".
	Label string `json:"label,omitempty"`
	// Traceparent is the W3C traceparent of the acquisition, as the hooks of session.WithTrace give it, or "".
	Traceparent string `json:"traceparent,omitempty"`
}

// behindJSON is a contender that an acquisition waits for. It may hold the lock or wait itself.
type behindJSON struct {
	// Node is the path of the contender's node.
	Node string `json:"node"`
	// Here says that the contender is of this process: its session is that of a manager for which
	// Handler was called.
	Here bool `json:"here,omitempty"`
	// ID is host/pid of a client of this module, the id of a candidate of an election, or the short text that another
	// client has written. It is "" if the node has other data, which is not shown. Nothing but Node is known of the
	// contender in the first 20 ms of a wait: a wait asks for the rest after that time, and the page asks for nothing.
	ID string `json:"id,omitempty"`
	// Label is the contender's label, or "".
	Label string `json:"label,omitempty"`
	// Traceparent is the contender's W3C traceparent, or "".
	Traceparent string `json:"traceparent,omitempty"`
	// Since is when the wait for this contender began.
	Since time.Time `json:"since"`
	// Seconds is how long that is ago.
	Seconds float64 `json:"seconds"`
	// Ahead is how many contenders are ahead, this one included.
	Ahead int `json:"ahead"`
}

// lossJSON is a hold that was lost.
type lossJSON struct {
	// Time is when the process noticed the loss.
	Time time.Time `json:"time"`
	// Kind is that of Hold.
	Kind string `json:"kind"`
	// Name is that of Hold.
	Name string `json:"name,omitempty"`
	// Path is the lock's directory, below the chroot.
	Path string `json:"path"`
	// Node is the path of the holder's node.
	Node string `json:"node"`
	// Since is the time of the grant. It is omitted if that was before Manager.Recording.
	Since time.Time `json:"since,omitzero"`
	// Label is the label of queue.WithLabel, or "".
	Label string `json:"label,omitempty"`
	// Cause is the error of the loss.
	Cause string `json:"cause"`
}

// sessionLossJSON is a session that was lost.
type sessionLossJSON struct {
	// Time is when the process noticed the loss.
	Time time.Time `json:"time"`
	// ID is the session id in hexadecimal digits, as in the logs.
	ID string `json:"id"`
	// Cause is the error of the loss.
	Cause string `json:"cause"`
}
