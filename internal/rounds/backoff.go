package rounds

import (
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Backoff draws waits between tries that are never given up. Each is between zero and a bound, which grows from First to
// Most by doubling. With a zero Most, the bound grows from 50 ms to a second. It is for one goroutine at a time. A copy
// draws on its own if it is made before the first wait.
type Backoff struct {
	First, Most time.Duration

	waits *backoff.ExponentialBackOff // nil before the first wait
}

// Jitter is how much of a wait is drawn. A simulation that has to be repeated sets it to 0 before it begins: each wait is half
// of its bound then.
var Jitter = 1.0

const (
	shortest = 50 * time.Millisecond
	longest  = time.Second
)

// New returns a Backoff with these bounds.
func New(first, most time.Duration) Backoff { return Backoff{First: first, Most: most} }

// Brief is New without waits of more than a second.
func Brief(first, most time.Duration) Backoff { return New(min(first, longest), min(most, longest)) }

// Next returns the next wait. (With this factor, ExponentialBackOff draws between zero and twice its interval.)
func (b *Backoff) Next() time.Duration {
	if b.waits == nil {
		first, most := b.First, b.Most
		if most == 0 {
			first, most = shortest, longest
		}
		b.waits = &backoff.ExponentialBackOff{
			InitialInterval: first / 2, MaxInterval: most / 2, Multiplier: 2, RandomizationFactor: Jitter,
		}
	}
	return b.waits.NextBackOff()
}

// Reset begins again with First.
func (b *Backoff) Reset() { b.waits = nil }
