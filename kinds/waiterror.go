package kinds

import "errors"

// ErrMaxWait ends a wait that has lasted for as long as its caller allows: see WithMaxWait of package queue.
var ErrMaxWait = errors.New("waited for as long as allowed")

// WaitError says why a call gave up waiting for a lock, and what was in its way. [errors.As] finds it in the error of
// each acquisition that ended so.
type WaitError struct {
	// Err is what ended the wait: the error of the call's context, or [ErrMaxWait].
	Err error
	// Reason says for people what was in the way, or "" if that is not known.
	Reason string
	// Ahead is the contender that Reason names: the holder if that is known (Holder of the Contender is true then), or
	// else the nearest one ahead. Its Path is "" if there is none. If the servers have not told yet who it is, it has a
	// Path alone.
	Ahead Contender
	// Connection says why there is no connection to a server, or which server has not answered for how long. It is nil
	// if nothing is wrong.
	Connection error
}

// Error returns what ended the wait, with the reason.
func (e *WaitError) Error() string {
	if e.Reason == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + " (" + e.Reason + ")"
}

// Unwrap returns Err.
func (e *WaitError) Unwrap() error { return e.Err }
