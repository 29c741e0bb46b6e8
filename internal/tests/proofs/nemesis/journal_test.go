//go:build linux

package nemesis

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// The events of a lock.
const (
	eventMissed = "missed" // did not get the lock, and why
	eventGot    = "got"    // the acquisition returned
	eventToken  = "token"  // or why there is none
	eventLook   = "look"   // asked whether it holds
	eventDown   = "down"   // the downgrade returned: from a write lock to a read lock
	eventFree   = "free"   // the release returned

	eventLong = "long" // keeps the lock for long

	// Of a worker, without a lock.
	eventRest = "rest" // it has come to rest, and what its process has in use
	eventLost = "lost" // the session was lost, and why
	eventLate = "late" // a goroutine of the process ran late, by To - From
)

// event is a line of what a worker says. Within one turn they are in order.
type event struct {
	Lock   string `json:"lock,omitempty"` // its name
	Worker int    `json:"worker"`
	Life   int    `json:"life"`           // counts the processes of a worker
	Hand   int    `json:"hand,omitempty"` // which of a worker's contenders for the lock
	Turn   int    `json:"turn"`           // counts the acquisitions of a process
	What   string `json:"what"`
	From   int64  `json:"from"` // before the call
	To     int64  `json:"to"`   // after it
	Held   bool   `json:"held,omitempty"`
	Token  int64  `json:"token,omitempty"`
	Error  string `json:"error,omitempty"`

	claim
	Counts *counts `json:"counts,omitempty"`
}

// counts are what a process has in use.
type counts struct{ Goroutines, Files, Heap int }

// claim is what an acquisition has got.
type claim struct {
	Weight int `json:"weight,omitempty"` // 1: a read lock; of a semaphore: the leases; 0: nobody else may hold
	Of     int `json:"of,omitempty"`     // which of several locks that a contender can take, from 1; 0 if there is one
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

// now is the time in nanoseconds by the clock that all processes of this machine share,
// Java's System.nanoTime among them.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}
