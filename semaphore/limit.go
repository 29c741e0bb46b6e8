package semaphore

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
)

// limit is the data of a semaphore's directory. One that somebody has written by hand, such as {"maxLeases":3}, counts
// too.
type limit struct {
	MaxLeases int `json:"maxLeases"`
	// Default says that the limit is the one that New was given. Then New must be given the same everywhere. Otherwise an
	// operator has set it.
	Default bool `json:"default,omitempty"`
	// Version is the version that the directory's data got with this limit. States before 0.1.0 read it: they take data
	// of another version for a change by hand, and then waiters replace their nodes.
	Version int32 `json:"version,omitempty"`
}

func (l limit) encode() []byte {
	data, err := json.Marshal(l)
	if err != nil {
		panic(err) // numbers and bools cannot fail to be JSON
	}
	return data
}

// limitIn returns the limit in force when the directory has the given data: the one that it says, or the one that New was
// given. ours is false if the data is not a semaphore's.
func (s *Semaphore) limitIn(data []byte) (l limit, ours bool) {
	if err := json.Unmarshal(data, &l); err == nil && checkCount(l.MaxLeases) == nil {
		return l, true
	}
	return limit{MaxLeases: s.max, Default: true}, len(data) == 0
}

// policy returns the policy of a contender when the directory has configuration c.
func (s *Semaphore) policy(me queue.Node, c queue.Config) (queue.Policy, error) {
	l, _ := s.limitIn(c.Data)
	if l.Default && l.MaxLeases != s.max {
		return queue.Policy{}, fmt.Errorf("%w: the limit is %d leases, not %d", queue.ErrConflict, l.MaxLeases, s.max)
	}
	return queue.LeasePolicy(me, l.MaxLeases), nil
}

// checkCount returns an error for a number of leases that is below 1, or too large for the name of a node.
func checkCount(n int) error {
	if n < 1 || n > math.MaxInt32 {
		return misuse.Invalidf("%d leases: want 1 to %d", n, math.MaxInt32)
	}
	return nil
}
