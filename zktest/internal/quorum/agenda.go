package quorum

import (
	"slices"
	"time"
)

// An agenda holds the events that the run loop has to run later, in the order of their times. Events with the same time
// run in the order in which they were added.
type agenda []event

type event struct {
	at  time.Time
	run func()
}

func (a *agenda) add(at time.Time, run func()) {
	i := len(*a)
	for i > 0 && (*a)[i-1].at.After(at) { // most events are the latest
		i--
	}
	*a = slices.Insert(*a, i, event{at, run})
}

// next returns the time of the next event.
func (a agenda) next() (time.Time, bool) {
	if len(a) == 0 {
		return time.Time{}, false
	}
	return a[0].at, true
}

// runDue runs the events that are due, including events that these add and that are due at once.
func (a *agenda) runDue() {
	for {
		at, ok := a.next()
		if !ok || time.Now().Before(at) {
			return
		}
		run := (*a)[0].run
		*a = slices.Delete(*a, 0, 1)
		run()
	}
}
