// Package rounds keeps loops that try again from spinning:
//
//	pace := rounds.Pace{Backoff: rounds.New(manager.Backoff())}
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
// Most loops go round again for a reason that occurs once, for example because an operator deleted
// a node. They should go round at once. But if a server gives such a reason each time, the loop
// would go round as fast as the server answers.
package rounds

import (
	"context"
	"time"
)

// Pace spaces the rounds of one loop. The first two rounds follow at once. From then on there is a
// wait before each round, which grows, with jitter. The zero value is ready for use. It must not be
// used by several goroutines at once.
type Pace struct {
	Backoff Backoff // gives the waits

	rounds int       // since the last reset
	began  time.Time // when the present round began
}

const (
	// free is how many rounds follow at once.
	free = 2
	// lasting is how long a round takes if the loop does not spin. After such a round the pace
	// is reset. The wait before the round does not count.
	lasting = 10 * time.Second
)

// Wait waits before the next round, but no longer than until end is closed or ctx ends. It returns
// ctx's error if ctx has ended, and nil otherwise.
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

// Reset makes the next rounds follow at once again. Call it when a round got the loop further. p may be nil.
func (p *Pace) Reset() {
	if p != nil {
		p.rounds = 0
		p.Backoff.Reset()
	}
}

// Rested tells how long the present round has waited for an event, such as that of a watch. After
// 50 ms or more the loop does not spin, however often such events come, and the pace is reset. p may be nil.
func (p *Pace) Rested(d time.Duration) {
	if d >= shortest {
		p.Reset()
	}
}
