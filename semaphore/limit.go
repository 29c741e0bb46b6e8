package semaphore

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// limit is what the data of a semaphore's directory says to all who use it.
type limit struct {
	MaxLeases int  `json:"maxLeases"`
	Resized   bool `json:"resized,omitempty"` // by Resize, whatever constructors say
}

func (l limit) encode() []byte {
	data, err := json.Marshal(l)
	if err != nil {
		panic(err) // a number and a bool cannot fail to be JSON
	}
	return data
}

// parseLimit reads the data of a directory; it reports whether that is a semaphore's.
func parseLimit(data []byte) (limit, bool) {
	var l limit
	err := json.Unmarshal(data, &l)
	return l, err == nil && checkCount(l.MaxLeases) == nil
}

// checkCount says what is wrong with a number of leases. A node's name has no room for more.
func checkCount(n int) error {
	if n < 1 || n > math.MaxInt32 {
		return fmt.Errorf("%w: %d leases: want 1 to %d", session.ErrInvalid, n, math.MaxInt32)
	}
	return nil
}

// policy is that of a contender where the directory's data is config.
func (s *Semaphore) policy(me queue.Node, config []byte) (queue.Policy, error) {
	most := s.max
	if l, ours := parseLimit(config); ours {
		if l.MaxLeases != s.max && !l.Resized {
			return queue.Policy{}, fmt.Errorf("%w: a semaphore of %d leases, and not of %d",
				queue.ErrConflict, l.MaxLeases, s.max)
		}
		most = l.MaxLeases
	}
	s.see(most)
	return queue.Policy{
		Weight: func(ahead queue.Node) int { return ahead.Weight },
		Slack:  most - me.Weight,
	}, nil
}

// see notes a limit. The highest counts: what was read first may be told last.
func (s *Semaphore) see(most int) {
	for {
		seen := s.seen.Load()
		if seen >= int64(most) || s.seen.CompareAndSwap(seen, int64(most)) {
			return
		}
	}
}

// checkRequest refuses what cannot be had, without asking the server. A limit that was
// lowered may be gone with its directory, so that it is the queue that goes by it.
func (s *Semaphore) checkRequest(n int) error {
	if err := checkCount(n); err != nil {
		return err
	}
	if s.curator && n > 1 {
		return fmt.Errorf("%w: %d leases at once: in Curator's layout a node is one lease", session.ErrInvalid, n)
	}
	if most := max(s.max, int(s.seen.Load())); n > most {
		return fmt.Errorf("%w: %d leases of %d", session.ErrInvalid, n, most)
	}
	return nil
}
