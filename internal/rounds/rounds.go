// Package rounds keeps loops that try again from spinning:
//
//	pace := rounds.NewPace(manager.Backoff())
//	for {
//		done, err := try()
//		if done || err != nil {
//			return err
//		}
//		if err := pace.Wait(ctx, session.Done()); err != nil {
//			return err
//		}
//	}
//
// Most loops go round again for a reason that occurs once, such as a deleted node, and should do so at once, but not
// as fast as a server can give such reasons.
package rounds

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Pace spaces the rounds of one loop. Two rounds follow at once. Then there is a wait before each, which grows, with
// jitter. The zero value is ready for use, by one goroutine at a time.
type Pace struct {
	Backoff Backoff

	rounds int
	began  time.Time // when the present round began
}

const (
	free = 2
	// lasting is how long a round takes in a loop that does not spin.
	lasting = 10 * time.Second
)

// NewPace returns a Pace whose waits grow from first to most.
func NewPace(first, most time.Duration) *Pace {
	return &Pace{Backoff: Backoff{First: first, Most: most}}
}

// BriefPace is NewPace without waits of more than a second.
func BriefPace(first, most time.Duration) *Pace {
	return NewPace(min(first, longest), min(most, longest))
}

// Wait waits before the next round, but no longer than until end is closed or ctx ends. It returns ctx's error if
// that has ended.
func (p *Pace) Wait(ctx context.Context, end <-chan struct{}) error {
	if !p.began.IsZero() && time.Since(p.began) >= lasting {
		p.Reset()
	}
	if p.rounds++; p.rounds > free {
		_ = Until(ctx, end, p.Backoff.Next())
	}
	p.began = time.Now()
	return ctx.Err()
}

// Reset makes the next rounds follow at once, when a round got the loop further. p may be nil.
func (p *Pace) Reset() {
	if p != nil {
		p.rounds = 0
		p.Backoff.Reset()
	}
}

// Rested tells how long the round has waited for an event. After 50 ms or more the loop does not spin, and Rested
// resets the pace. p may be nil.
func (p *Pace) Rested(d time.Duration) {
	if d >= shortest {
		p.Reset()
	}
}

// Backoff draws waits, each between zero and a bound, which doubles from First to Most. Zero values mean 50 ms and a
// second. It is for one goroutine at a time. Copy it before the first wait.
type Backoff struct {
	First, Most time.Duration

	waits *backoff.ExponentialBackOff // nil before the first wait
}

// Jitter is how much of a wait is drawn. A simulation that has to be repeated sets it to 0 before it begins.
var Jitter = 1.0

const (
	shortest = 50 * time.Millisecond
	longest  = time.Second
)

// Next returns the next wait: ExponentialBackOff draws between zero and twice its interval.
func (b *Backoff) Next() time.Duration {
	if b.waits == nil {
		first, most := b.First, b.Most
		if most == 0 {
			first, most = shortest, longest
		}
		b.waits = &backoff.ExponentialBackOff{
			InitialInterval: max(first/2, min(1, most/2)), MaxInterval: most / 2, Multiplier: 2, RandomizationFactor: Jitter,
		}
	}
	return b.waits.NextBackOff()
}

// Reset begins again with First.
func (b *Backoff) Reset() { b.waits = nil }

// Until waits for d, or until end is closed. If ctx ends before, it returns the error of ctx.
func Until(ctx context.Context, end <-chan struct{}, d time.Duration) error {
	if d <= 0 { // see .ci/race: timers that are due at once can crash the race detector
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-end:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
