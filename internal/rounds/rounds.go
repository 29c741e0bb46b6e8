// Package rounds keeps loops that try again from spinning.
//
// Most loops go round again for a reason that happens once, such as a node that an operator
// deleted, and should do so at once. A server that gives the same reason each time would have
// them go round as fast as it answers.
package rounds

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Pace spaces the rounds of one loop: the first rounds follow at once, and from then on each
// wait is longer, with jitter. The zero value is ready for use. One goroutine uses it at a time.
type Pace struct {
	// New returns the waits. Nil: exponential with full jitter, from 50 ms to a second.
	New func() backoff.BackOff

	rounds int             // since it began anew
	began  time.Time       // the present round
	waits  backoff.BackOff // nil until the first wait
}

const (
	// free is how many rounds follow at once.
	free = 2
	// lasting is how long a round of a loop that does not spin takes: after it the pace
	// begins anew. The wait before the round does not count.
	lasting = 10 * time.Second
)

// Wait waits before the next round. It returns early, and nil, when end is closed; and ctx's
// error when ctx has ended.
func (p *Pace) Wait(ctx context.Context, end <-chan struct{}) error {
	if !p.began.IsZero() && time.Since(p.began) >= lasting {
		p.Reset()
	}
	if p.rounds++; p.rounds > free {
		p.sleep(ctx, end)
	}
	p.began = time.Now()
	return ctx.Err()
}

// Reset begins anew: the last round got the loop further.
func (p *Pace) Reset() { p.rounds, p.waits = 0, nil }

func (p *Pace) sleep(ctx context.Context, end <-chan struct{}) {
	t := time.NewTimer(p.next())
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-end:
	}
}

// next returns the next wait. Waits that have said stop begin again.
func (p *Pace) next() time.Duration {
	if p.waits == nil && p.New != nil {
		p.waits = p.New()
	}
	if p.waits == nil {
		p.waits = defaults()
	}
	d := p.waits.NextBackOff()
	if d == backoff.Stop {
		p.waits.Reset()
		d = p.waits.NextBackOff()
	}
	if d == backoff.Stop {
		d = longest
	}
	return d
}

const (
	shortest = 50 * time.Millisecond
	longest  = time.Second
)

// defaults draws each wait from zero to a bound that doubles: ExponentialBackOff draws from
// zero to twice its interval.
func defaults() backoff.BackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval:     shortest / 2,
		MaxInterval:         longest / 2,
		Multiplier:          2,
		RandomizationFactor: 1,
	}
}
