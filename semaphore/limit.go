package semaphore

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// limit is the data of a semaphore's directory. An operator may write {"maxLeases":3} there by hand.
type limit struct {
	MaxLeases int `json:"maxLeases"`
	// Default says that the limit is the one that New was given. Then New must be given the same
	// everywhere. Otherwise an operator has set it.
	Default bool `json:"default,omitempty"`
	// Former are higher limits that were in force before, the highest first. Each was in force after
	// the one before it in the list. Limits that a later one exceeded are left out, as they no longer
	// matter. Absent: not known.
	Former []formerLimit `json:"former,omitempty"`
	// Lowered is the last transaction that has lowered the limit, which may have been raised since.
	// 0: none. thisOne: the transaction that set this data.
	Lowered int64 `json:"lowered,omitempty"`
	// Version is the version that the directory's data got with this limit. If the data has another
	// version, somebody has changed it by hand, and Former and Lowered are incomplete.
	Version int32 `json:"version,omitempty"`
}

// thisOne stands for a transaction whose id is not known when the data is written.
const thisOne = -1

// formerLimit was in force until a transaction (zxid). 0 is the transaction that set this data.
type formerLimit struct {
	MaxLeases int   `json:"maxLeases"`
	Until     int64 `json:"until,omitempty"`
}

// maxFormer bounds the number of former limits.
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

// parseLimit parses the data of a directory. It reports whether the data is a semaphore's.
func parseLimit(data []byte) (limit, bool) {
	var l limit
	err := json.Unmarshal(data, &l)
	return l, err == nil && checkCount(l.MaxLeases) == nil
}

// past returns the limits that were in force before this one. c is the configuration from which l was
// read. If somebody has set or deleted the data by hand, any limit may have been in force before.
func (l limit) past(c kinds.Config) []formerLimit {
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

// lastLowered returns the last transaction that has lowered the limit, 0 if none has.
func (l limit) lastLowered(c kinds.Config) int64 {
	if l.Version != c.Version || l.Lowered == thisOne {
		return c.Changed
	}
	return l.Lowered
}

// next returns the limit that is to replace this one, which was read from c.
func (l limit) next(most int, byDefault bool, c kinds.Config) limit {
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
	if len(n.Former) > maxFormer { // join the two oldest to one that allows what either allowed
		n.Former[1].MaxLeases = n.Former[0].MaxLeases
		n.Former = n.Former[1:]
	}
	return n
}

// tightened returns the transaction that ended the last limit higher than this one, and the highest
// former limit. It returns 0 if there was no higher limit.
func (l limit) tightened(c kinds.Config) (by int64, from int) {
	for _, f := range l.past(c) {
		if f.MaxLeases > l.MaxLeases {
			by, from = max(by, f.Until), max(from, f.MaxLeases)
		}
	}
	return by, from
}

// checkCount returns an error for a number of leases that is below 1, or too large for the name of a
// node.
func checkCount(n int) error {
	if n < 1 || n > math.MaxInt32 {
		return fmt.Errorf("%w: %d leases: want 1 to %d", session.ErrInvalid, n, math.MaxInt32)
	}
	return nil
}

// policy returns the policy of a contender when the directory has configuration c.
func (s *Semaphore) policy(me kinds.Node, c kinds.Config) (p kinds.Policy, t kinds.Tightening, err error) {
	l, ours := parseLimit(c.Data)
	if !ours {
		l = limit{MaxLeases: s.max, Default: true}
	}
	if l.Default && l.MaxLeases != s.max {
		return p, t, fmt.Errorf("%w: the limit is %d leases, not %d", queue.ErrConflict, l.MaxLeases, s.max)
	}
	p = kinds.Policy{
		Weight: func(ahead kinds.Node) int { return ahead.Weight },
		Slack:  l.MaxLeases - me.Weight,
	}
	if t.Lowered = l.lastLowered(c); t.Lowered != 0 {
		p.Replaces = func(kinds.Node) bool { return true }
	}
	if by, from := l.tightened(c); by != 0 {
		t.Tightened, t.Former = by, from-me.Weight
	}
	return p, t, nil
}

// inForce returns the limit in force when the directory has configuration c.
func (s *Semaphore) inForce(c kinds.Config) int {
	if l, ours := parseLimit(c.Data); ours {
		return l.MaxLeases
	}
	return s.max
}
