//go:build linux

package nemesis

import (
	"fmt"
	"math"
	"time"
)

// This file judges what tried locks say. Their holders are judged as those of other locks.
//
// # Refusals
//
// A try can be refused only if another contender can have been ahead of it. A contender can have had
// a node from the beginning of its turn to the end of its release or of its refusal, if that was confirmed.
// If it was not, if the session changed meanwhile, or if the process was killed, a node may stay until its
// session has ended. With faults that is not at a known time, so the check allows ten timeouts for it. A try
// that is connected to a leader which has been cut off can be told of a holder that has left. The servers
// are given five ticks until then, and so the check allows a timeout, which is not less.
//
// When all rest, each contender takes the lock alone. Then nothing can be in its way, and no refusal is
// right.

// stay is a turn as long as its node can have been there.
type stay struct {
	from, gone int64
	reads      bool // it is known to be a reader
	moved      bool // its session changed
}

func stays(events []event, deaths map[lifeID]int64, linger time.Duration) map[turnID]stay {
	all := make(map[turnID]stay)
	for _, e := range events {
		s, ok := all[e.id()]
		switch e.What {
		case eventAsks:
			s = stay{from: e.From, gone: math.MaxInt64}
			if died, ok := deaths[e.id().lifeID]; ok {
				s.gone = died + int64(linger)
			}
		case eventGot:
			s.reads, s.moved = e.Reads, e.Moved
		case eventMissed, eventFree:
			s.reads = s.reads || e.Reads
			s.gone = e.To + int64(linger)
			if e.What == eventFree && e.Error == "" && !s.moved || e.Refused != nil && e.Refused.Gone {
				s.gone = e.To
			}
		}
		if ok || e.What == eventAsks {
			all[e.id()] = s
		}
	}
	return all
}

// groundless returns the refusals for which there was no reason.
func groundless(events []event, deaths map[lifeID]int64, timeout time.Duration) (found []string) {
	all := stays(events, deaths, 10*timeout)
	for _, e := range events {
		if e.Refused == nil {
			continue
		}
		if e.Alone {
			found = append(found, fmt.Sprintf("%v was refused when it was alone: %s", e.id(), e.Error))
		}
		from := e.From - int64(timeout)
		ahead := 0
		for id, s := range all {
			if id != e.id() && s.from <= e.To && s.gone >= from && !(e.Reads && s.reads) {
				ahead++
			}
		}
		if ahead < e.Refused.Ahead {
			found = append(found, fmt.Sprintf("%v was refused with %d others, want %d or more: %s",
				e.id(), ahead, e.Refused.Ahead, e.Error))
		}
	}
	return found
}

// refusals says how often a try was refused.
func refusals(events []event) string {
	tries := 0
	for _, e := range events {
		if e.Refused != nil {
			tries++
		}
	}
	return fmt.Sprintf("%d tries of a busy lock", tries)
}
