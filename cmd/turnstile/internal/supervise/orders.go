//go:build linux || darwin || freebsd

package supervise

import (
	"bytes"
	"encoding/json"
	"syscall"
	"time"
)

// order is a line from turnstile to the guard. Fields that are not set change nothing.
type order struct {
	// Until is when the guard must kill the command if it hears nothing more, by clock.
	Until time.Duration `json:",omitempty"`
	Start *start        `json:",omitempty"`
	// Signals go to the command's process group, or to all descendants.
	Signals []syscall.Signal `json:",omitempty"`
	All     bool             `json:",omitempty"`
	// Kill has the guard kill all descendants, until none is left.
	Kill bool `json:",omitempty"`
	// Access is how to reach the servers, for the Prepare of Helper. Session is the present session. The guard answers
	// with Noted.
	Access  json.RawMessage `json:",omitempty"`
	Session *Session        `json:",omitempty"`
	// Done ends the guard.
	Done bool `json:",omitempty"`
}

// start is an order to start the command, unless the deadline has passed. The guard answers with Started, Late or Failed.
type start struct {
	Deadline   time.Duration
	Path       []byte // bytes, since JSON would change what is not UTF-8
	Args, Env  [][]byte
	Foreground bool // the command's group becomes the terminal's foreground group
}

// report is a line from the guard to turnstile. One field is set, or Ended and Left.
type report struct {
	Noted   bool          `json:",omitempty"` // the guard knows the session
	Started int           `json:",omitempty"` // the process id of the command, which is that of its group
	Late    bool          `json:",omitempty"` // the command was not started: the deadline has passed
	Failed  syscall.Errno `json:",omitempty"` // the command could not be started

	Stopped   syscall.Signal `json:",omitempty"` // a signal has stopped the command
	Continued bool           `json:",omitempty"` // the command goes on

	Ended *syscall.WaitStatus `json:",omitempty"` // the command has ended
	Left  []string            `json:",omitempty"` // what it has left
	Gone  bool                `json:",omitempty"` // the command has ended, and no descendant is left
	Stuck []string            `json:",omitempty"` // descendants that the guard may not kill, when no others are left
}

// line returns an order or a report as a line.
func line(v any) []byte {
	data, _ := json.Marshal(v) // these types have no values that JSON cannot represent
	return append(data, '\n')
}

// cutLine returns the first line of a buffer, and what follows it.
func cutLine(buf []byte) (first, rest []byte, ok bool) { return bytes.Cut(buf, []byte{'\n'}) }

// texts and bytesOf convert between strings and what JSON leaves as it is.
func texts(all [][]byte) []string {
	out := make([]string, len(all))
	for i, b := range all {
		out[i] = string(b)
	}
	return out
}

func bytesOf(all []string) [][]byte {
	out := make([][]byte, len(all))
	for i, s := range all {
		out[i] = []byte(s)
	}
	return out
}
