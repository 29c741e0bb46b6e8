//go:build linux

package nemesis

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// What workers write down.
const (
	eventAsks   = "asks"   // is about to ask for a lock that can refuse
	eventMissed = "missed" // did not get the lock, and why
	eventGot    = "got"    // the acquisition returned
	eventToken  = "token"  // or why there is none
	eventLook   = "look"   // asked whether it holds
	eventMark   = "mark"   // a line under the lock, for its place in the file
	eventWrite  = "write"  // to the register
	eventRead   = "read"   // of the register
	eventDown   = "down"   // the downgrade returned: from a write lock to a read lock
	eventFree   = "free"   // the release returned

	eventResizing = "resizing" // is about to call Resize
	eventResized  = "resized"  // that returned
	eventSettled  = "settled"  // every server has the limit of that turn, or a later one
)

// event is a line of the journal. Within one turn of a worker they are in order.
type event struct {
	Worker int    `json:"worker"`
	Life   int    `json:"life"` // counts the processes of a worker
	Turn   int    `json:"turn"` // counts the acquisitions of a process
	What   string `json:"what"`
	From   int64  `json:"from"` // before the call
	To     int64  `json:"to"`   // after it
	Held   bool   `json:"held"`
	Stale  bool   `json:"stale"` // the register refused
	Token  int64  `json:"token"`
	Value  int64  `json:"value"`
	Error  string `json:"error"`

	claim
	Limit   int      `json:"limit,omitempty"` // of a Resize
	Refused *refused `json:"refused,omitempty"`
	Alone   bool     `json:"alone,omitempty"` // all others rest
}

// refused says how a try was refused.
type refused struct {
	Ahead int  `json:"ahead"` // so many others at least were ahead, as far as that is known
	Gone  bool `json:"gone"`  // its node is
}

// claim is what an acquisition has got.
type claim struct {
	Reads  bool `json:"reads,omitempty"`  // a read lock, and not a write lock
	Weight int  `json:"weight,omitempty"` // leases of a semaphore
	// View is when the request was sent whose answer let the contender into a semaphore; 0 means
	// unknown. The contender can also have decided by events after the answer, but by nothing
	// from before the request.
	View int64 `json:"view,omitempty"`
	// Moved says that the session changed during the acquisition, so a node of the former one may be left for a while.
	Moved bool `json:"moved,omitempty"`
	Of    int  `json:"of,omitempty"` // which of several locks that a contender can take, from 1; 0 if there is one
}

// journal is the file that all workers append to, each event by one write. The line starts
// with a newline too: a write that a kill has cut short spoils no other line.
type journal struct{ file *os.File }

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &journal{f}, nil
}

func (j *journal) add(e event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(append([]byte{'\n'}, line...), '\n'))
	return err
}

// readJournal returns the events in the order of the file. Of lines cut short there may be
// as many as processes were killed.
func readJournal(path string, kills int) ([]event, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var events []event
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			if kills--; kills < 0 {
				return nil, fmt.Errorf("%s: %w in %q", path, err, line)
			}
			continue
		}
		events = append(events, e)
	}
	return events, nil
}

// alone reports whether no other hold may be held at the same time.
func (c claim) alone() bool { return !c.Reads && c.Weight == 0 && c.Of == 0 }
