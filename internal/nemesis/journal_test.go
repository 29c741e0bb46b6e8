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
	eventMissed = "missed" // did not get the lock, and why
	eventGot    = "got"    // the acquisition returned
	eventToken  = "token"  // or why there is none
	eventLook   = "look"   // asked whether it holds
	eventMark   = "mark"   // a line under the lock, for its place in the file
	eventWrite  = "write"  // to the register
	eventRead   = "read"   // of the register
	eventFree   = "free"   // the release returned
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
