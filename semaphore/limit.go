package semaphore

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// limit is what the data of a semaphore's directory says to all who use it. An operator may
// write {"maxLeases":3} there by hand.
type limit struct {
	MaxLeases int `json:"maxLeases"`
	// Default says that it is what New was given, and nobody's decision: then New must be
	// given the same.
	Default bool `json:"default,omitempty"`
	// Former are higher limits that were in force before, the highest first and each in force
	// for longer than the one before it in the list. Those that are no longer there are of no
	// importance, as a higher one was in force after them. Absent: not known.
	Former []formerLimit `json:"former,omitempty"`
	// Lowered is the last transaction that has lowered the limit, which may have been raised
	// since; thisOne stands for the one that set the data which says so, 0 for none.
	Lowered int64 `json:"lowered,omitempty"`
	// Version is that of the directory's data as this was written: if it has another by now,
	// somebody has changed it by hand, and Former and Lowered do not tell all.
	Version int32 `json:"version,omitempty"`
}

// thisOne stands for a transaction that is not yet known when it is written down.
const thisOne = -1

// formerLimit was in force until a transaction (zxid); 0 stands for the one that set the data
// which says so.
type formerLimit struct {
	MaxLeases int   `json:"maxLeases"`
	Until     int64 `json:"until,omitempty"`
}

// maxFormer bounds what is kept of the past.
const maxFormer = 16

// first is the limit that the first contender sets, in a directory without data.
func first(most int) limit { return limit{MaxLeases: most, Default: true, Version: 1} }

func (l limit) encode() []byte {
	data, err := json.Marshal(l)
	if err != nil {
		panic(err) // numbers and bools cannot fail to be JSON
	}
	return data
}

// parseLimit reads the data of a directory; it reports whether that is a semaphore's.
func parseLimit(data []byte) (limit, bool) {
	var l limit
	err := json.Unmarshal(data, &l)
	return l, err == nil && checkCount(l.MaxLeases) == nil
}

// past returns the limits that were in force before this one, where c is the configuration
// that it was read from. What was there before data that somebody has written by hand, or
// taken away, is not known: it may have been any.
func (l limit) past(c queue.Config) []formerLimit {
	if l.Version != c.Version {
		return []formerLimit{{math.MaxInt32, c.Changed}}
	}
	past := slices.Clone(l.Former)
	for i := range past {
		if past[i].Until == 0 {
			past[i].Until = c.Changed
		}
	}
	return past
}

// lastLowered returns the last transaction that has lowered the limit; 0 if none has.
func (l limit) lastLowered(c queue.Config) int64 {
	if l.Version != c.Version || l.Lowered == thisOne {
		return c.Changed
	}
	return l.Lowered
}

// next returns the limit that is to follow this one, which was read from c.
func (l limit) next(most int, byDefault bool, c queue.Config) limit {
	past := append(l.past(c), formerLimit{MaxLeases: l.MaxLeases})
	n := limit{MaxLeases: most, Default: byDefault, Lowered: l.lastLowered(c), Version: c.Version + 1}
	if most < l.MaxLeases {
		n.Lowered = thisOne
	}
	for i, f := range past {
		outlived := slices.ContainsFunc(past[i+1:], func(o formerLimit) bool { return o.MaxLeases >= f.MaxLeases })
		if f.MaxLeases > most && !outlived {
			n.Former = append(n.Former, f)
		}
	}
	if len(n.Former) > maxFormer { // the two oldest become one that allows what either did
		n.Former[1].MaxLeases = n.Former[0].MaxLeases
		n.Former = n.Former[1:]
	}
	return n
}

// tightened returns the transaction that ended the last limit which was higher than this one,
// and the highest that there was; 0 if there was none.
func (l limit) tightened(c queue.Config) (by int64, from int) {
	for _, f := range l.past(c) {
		if f.MaxLeases > l.MaxLeases {
			by, from = max(by, f.Until), max(from, f.MaxLeases)
		}
	}
	return by, from
}

// checkCount says what is wrong with a number of leases. A node's name has no room for more.
func checkCount(n int) error {
	if n < 1 || n > math.MaxInt32 {
		return fmt.Errorf("%w: %d leases: want 1 to %d", session.ErrInvalid, n, math.MaxInt32)
	}
	return nil
}

// policy is that of a contender under a configuration of the directory.
func (s *Semaphore) policy(me queue.Node, c queue.Config) (queue.Policy, error) {
	l, ours := parseLimit(c.Data)
	if !ours {
		l = limit{MaxLeases: s.max, Default: true}
	}
	if l.Default && l.MaxLeases != s.max {
		return queue.Policy{}, fmt.Errorf("%w: a semaphore of %d leases, and not of %d",
			queue.ErrConflict, l.MaxLeases, s.max)
	}
	p := queue.Policy{
		Weight: func(ahead queue.Node) int { return ahead.Weight },
		Slack:  l.MaxLeases - me.Weight,
	}
	if p.Lowered = l.lastLowered(c); p.Lowered != 0 {
		p.Replaces = func(queue.Node) bool { return true }
	}
	if by, from := l.tightened(c); by != 0 {
		p.Tightened, p.Former = by, from-me.Weight
	}
	return p, nil
}

// inForce returns the limit of the directory with this configuration.
func (s *Semaphore) inForce(c queue.Config) int {
	if l, ours := parseLimit(c.Data); ours {
		return l.MaxLeases
	}
	return s.max
}
