//go:build linux

package nemesis

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// rule says how much of a lock may be held at once.
type rule struct {
	limit  int  // of the weights of holds that have one, unless a Resize changes it
	shared bool // consecutive holds of one process can have one token
}

// forgiven is a time in which a worker need not know that its session is over: an operator has ended it.
type forgiven struct {
	worker   int
	from, to int64
}

// verdict is what the history of a lock shows.
type verdict struct {
	violations []string // more was held at once than may be
	other      []string // whatever else is wrong
	undecided  int      // pieces that took the checker too long
	counts     map[string]int
}

// add adds the verdict on a later piece of the history.
func (v *verdict) add(w verdict) {
	v.violations, v.other = append(v.violations, w.violations...), append(v.other, w.other...)
	v.undecided += w.undecided
	if v.counts == nil {
		v.counts = make(map[string]int)
	}
	for what, n := range w.counts {
		v.counts[what] += n
	}
}

// figures returns the counts, in order.
func (v *verdict) figures() (all []string) {
	for _, what := range slices.Sorted(maps.Keys(v.counts)) {
		all = append(all, fmt.Sprintf("%d %s", v.counts[what], what))
	}
	return all
}

// judge judges the history of a lock. timeout is that of the sessions.
func judge(r rule, events []event, deaths map[lifeID]int64, timeout time.Duration, excused []forgiven) (v verdict) {
	v.counts = make(map[string]int)
	v.other = slices.Concat(strangers(events), groundless(events, deaths, timeout))
	for _, e := range events {
		if e.Refused != nil {
			v.counts["tries of a busy lock"]++
		}
	}
	events = withoutForgiven(events, excused)
	changes := resizes(events, deaths)
	for _, c := range changes {
		v.counts["changes of the limit"]++
		if c.settled < math.MaxInt64 {
			v.counts["changes of the limit that all servers were seen to have"]++
		}
	}
	all := make(map[int][]span)
	for _, s := range spans(events, deaths) {
		all[s.Of] = append(all[s.Of], s)
	}
	for _, i := range slices.Sorted(maps.Keys(all)) {
		if r.shared {
			v.counts["holds in a place that had been held before"] += sharedTokens(all[i])
		}
		v.violations = append(v.violations, overlaps(all[i], changes, r.limit)...)
		bad, unknown := linearizable(history(all[i], changes), r.limit, r.shared)
		v.other, v.undecided = append(v.other, bad...), v.undecided+unknown
	}
	return v
}

// withoutForgiven leaves out the turns of workers whose session was just being ended by an operator. A Resize stays.
func withoutForgiven(events []event, excused []forgiven) []event {
	out := make(map[turnID]bool)
	for _, e := range events {
		for _, f := range excused {
			if e.Worker == f.worker && e.To >= f.from && e.From <= f.to {
				out[e.id()] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(events), func(e event) bool { return out[e.id()] && e.Limit == 0 })
}

// sharedTokens returns how many holds had the token of an earlier one.
func sharedTokens(all []span) (again int) {
	seen := make(map[int64]bool)
	for _, s := range all {
		if s.token != 0 && seen[s.token] {
			again++
		}
		seen[s.token] = true
	}
	return again
}

// strangers returns the calls that a server has refused because it did not know who asked.
func strangers(events []event) (found []string) {
	for _, e := range events {
		if strings.Contains(e.Error, zk.ErrNoAuth.Error()) || strings.Contains(e.Error, zk.ErrAuthFailed.Error()) {
			found = append(found, fmt.Sprintf("%v was a stranger: %s: %s", e.id(), e.What, e.Error))
		}
	}
	return found
}

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
			s.reads, s.moved = e.Weight == 1, e.Moved
		case eventMissed, eventFree:
			s.reads = s.reads || e.Weight == 1
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
		ahead := 0
		for id, s := range all {
			beside := e.Refused.Reads && s.reads
			if id != e.id() && s.from <= e.To && s.gone >= e.From-int64(timeout) && !beside {
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
