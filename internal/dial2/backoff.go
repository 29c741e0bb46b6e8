package dial

import (
	"math/rand/v2"
	"time"
)

// Backoff draws waits between attempts that are never given up. Each is between zero and a bound, which grows from First
// to Most by doubling. It is for one goroutine at a time. A copy draws on its own.
type Backoff struct {
	First, Most time.Duration

	bound time.Duration
}

// Next returns the next wait.
func (b *Backoff) Next() time.Duration {
	b.bound = min(max(b.First, 2*b.bound), b.Most)
	if b.bound <= 0 {
		return 0
	}
	return rand.N(b.bound) //nolint:gosec // no secret
}

// Reset begins again with First.
func (b *Backoff) Reset() { b.bound = 0 }
