//go:build linux

package nemesis

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// The events of a lock.
const (
	eventAsks   = "asks"   // is about to ask for a lock that can refuse
	eventMissed = "missed" // did not get the lock, and why
	eventGot    = "got"    // the acquisition returned
	eventToken  = "token"  // or why there is none
	eventLook   = "look"   // asked whether it holds
	eventDown   = "down"   // the downgrade returned: from a write lock to a read lock
	eventFree   = "free"   // the release returned

	eventResizing = "resizing" // is about to call Resize
	eventResized  = "resized"  // that returned
	eventSettled  = "settled"  // every server has the limit of that turn, or a later one

	// Of the session of a worker, without a lock.
	eventLost = "lost" // the session was lost, and why
	eventLate = "late" // a goroutine of the process ran late, by To - From
)

// event is a line of the journal. Within one turn they are in order.
type event struct {
	Lock   string `json:"lock,omitempty"` // its name; a rival has one lock only, and need not say it
	Worker int    `json:"worker"`
	Life   int    `json:"life"` // counts the processes of a worker
	Turn   int    `json:"turn"` // counts the acquisitions of a process
	What   string `json:"what"`
	From   int64  `json:"from"` // before the call
	To     int64  `json:"to"`   // after it
	Held   bool   `json:"held,omitempty"`
	Token  int64  `json:"token,omitempty"`
	Error  string `json:"error,omitempty"`

	claim
	Limit   int      `json:"limit,omitempty"` // of a Resize
	Refused *refused `json:"refused,omitempty"`
	Alone   bool     `json:"alone,omitempty"` // all others rest
}

// refused says how a try was refused.
type refused struct {
	Ahead int  `json:"ahead"` // so many others at least were ahead, as far as that is known
	Gone  bool `json:"gone"`  // its node is
	Reads bool `json:"reads"` // a reader was, in whose way other readers are not
}

// claim is what an acquisition has got.
type claim struct {
	Weight int `json:"weight,omitempty"` // 1: a read lock; of a semaphore: the leases; 0: nobody else may hold
	// View is when the request was sent whose answer let the contender into a semaphore; 0 means
	// unknown. The contender can also have decided by events after the answer, but by nothing
	// from before the request.
	View int64 `json:"view,omitempty"`
	// Moved says that the session changed during the acquisition, so a node of the former one may be left for a while.
	Moved bool `json:"moved,omitempty"`
	Of    int  `json:"of,omitempty"` // which of several locks that a contender can take, from 1; 0 if there is one
}

// lifeID names a process.
type lifeID struct{ worker, life int }

// turnID names an acquisition.
type turnID struct {
	lifeID
	turn int
}

func (id turnID) String() string { return fmt.Sprintf("w%d.%d#%d", id.worker, id.life, id.turn) }

func (e event) id() turnID { return turnID{lifeID{e.Worker, e.Life}, e.Turn} }

// journal is the file that all processes append to, each event by one write. The line starts with a newline
// too: a write that a kill has cut short spoils no other line. Events of this process stay in memory.
type journal struct {
	file *os.File // nil: in memory

	mu  sync.Mutex
	all []event // guarded by mu
}

func openJournal(name string) (*journal, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &journal{file: f}, err
}

func (j *journal) add(e event) {
	if j.file == nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.all = append(j.all, e)
		return
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append(append([]byte{'\n'}, line...), '\n'))
	}
	if err != nil {
		fatal(err)
	}
}

// readJournal returns the events in the order of the file. Of lines cut short there may be
// as many as processes were killed.
func readJournal(name string, kills int) ([]event, error) {
	text, err := os.ReadFile(name)
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
				return nil, fmt.Errorf("%s: %w in %q", name, err, line)
			}
			continue
		}
		events = append(events, e)
	}
	return events, nil
}

// now is the time in nanoseconds by the clock that all processes of this machine share,
// Java's System.nanoTime among them.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}
