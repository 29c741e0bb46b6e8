package semaphore

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
)

// limit is the data of a semaphore's directory. One that somebody has written by hand, such as {"maxLeases":3}, counts too.
type limit struct {
	MaxLeases int `json:"maxLeases"`
	// Default says that the limit is the one that New was given. Then New must be given the same everywhere. Otherwise an
	// operator has set it.
	Default bool `json:"default,omitempty"`
	// Version is the version that the directory's data got with this limit. States before 0.1.0 read it: they take data of
	// another version for a change by hand, and then waiters replace their nodes.
	Version int32 `json:"version,omitempty"`
}

// firstLimit is the limit that the first contender sets, in a directory without data.
func firstLimit(most int) limit { return limit{MaxLeases: most, Default: true, Version: 1} }

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
	return l, err == nil && l.MaxLeases >= 1 && l.MaxLeases <= math.MaxInt32
}

// checkCount returns an error for a number of leases that is below 1, or too large for the name of a node.
func checkCount(n int) error {
	if n < 1 || n > math.MaxInt32 {
		return misuse.Invalidf("%d leases: want 1 to %d", n, math.MaxInt32)
	}
	return nil
}

// policy returns the policy of a contender when the directory has configuration c.
func (s *Semaphore) policy(me queue.Node, c queue.Config) (queue.Policy, error) {
	l, ours := parseLimit(c.Data)
	if !ours {
		l = limit{MaxLeases: s.max, Default: true}
	}
	if l.Default && l.MaxLeases != s.max {
		return queue.Policy{}, fmt.Errorf("%w: the limit is %d leases, not %d", queue.ErrConflict, l.MaxLeases, s.max)
	}
	return queue.LeasePolicy(me, l.MaxLeases), nil
}

// inForce returns the limit in force when the directory has the given data.
func (s *Semaphore) inForce(data []byte) int {
	if l, ours := parseLimit(data); ours {
		return l.MaxLeases
	}
	return s.max
}
