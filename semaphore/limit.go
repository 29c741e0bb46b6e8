package semaphore

import (
	"fmt"
	"math"

	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/internal/nodedata"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

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
	l, ours := nodedata.ParseLimit(c.Data)
	if !ours {
		l = nodedata.Limit{MaxLeases: s.max, Default: true}
	}
	if l.Default && l.MaxLeases != s.max {
		return p, t, fmt.Errorf("%w: the limit is %d leases, not %d", queue.ErrConflict, l.MaxLeases, s.max)
	}
	p = decide.Leases(l.MaxLeases)(me)
	if t.Lowered = l.LastLowered(c); t.Lowered != 0 {
		p.Replaces = func(kinds.Node) bool { return true }
	}
	if by, from := l.Tightened(c); by != 0 {
		t.Tightened, t.Former = by, from-me.Weight
	}
	return p, t, nil
}

// inForce returns the limit in force when the directory has configuration c.
func (s *Semaphore) inForce(c kinds.Config) int {
	if l, ours := nodedata.ParseLimit(c.Data); ours {
		return l.MaxLeases
	}
	return s.max
}
