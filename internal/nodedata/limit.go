package nodedata

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/turnstile-go/turnstile/kinds"
)

// Limit is the data of a semaphore's directory. An operator may write {"maxLeases":3} there by hand.
type Limit struct {
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

// FirstLimit is the limit that the first contender sets, in a directory without data.
func FirstLimit(most int) Limit { return Limit{MaxLeases: most, Default: true, Version: 1} }

func (l Limit) Encode() []byte {
	data, err := json.Marshal(l)
	if err != nil {
		panic(err) // numbers and bools cannot fail to be JSON
	}
	return data
}

// ParseLimit parses the data of a directory. It reports whether the data is a semaphore's.
func ParseLimit(data []byte) (Limit, bool) {
	var l Limit
	err := json.Unmarshal(data, &l)
	return l, err == nil && l.MaxLeases >= 1 && l.MaxLeases <= math.MaxInt32
}

// past returns the limits that were in force before this one. c is the configuration from which l was
// read. If somebody has set or deleted the data by hand, any limit may have been in force before.
func (l Limit) past(c kinds.Config) []formerLimit {
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

// LastLowered returns the last transaction that has lowered the limit, 0 if none has.
func (l Limit) LastLowered(c kinds.Config) int64 {
	if l.Version != c.Version || l.Lowered == thisOne {
		return c.Changed
	}
	return l.Lowered
}

// Next returns the limit that is to replace this one, which was read from c.
func (l Limit) Next(most int, byDefault bool, c kinds.Config) Limit {
	past := append(l.past(c), formerLimit{MaxLeases: l.MaxLeases})
	n := Limit{MaxLeases: most, Default: byDefault, Lowered: l.LastLowered(c), Version: c.Version + 1}
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

// Tightened returns the transaction that ended the last limit higher than this one, and the highest
// former limit. It returns 0 if there was no higher limit.
func (l Limit) Tightened(c kinds.Config) (by int64, from int) {
	for _, f := range l.past(c) {
		if f.MaxLeases > l.MaxLeases {
			by, from = max(by, f.Until), max(from, f.MaxLeases)
		}
	}
	return by, from
}
