//go:build linux

package clockoverlap

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/turnstile-go/turnstile/session"
)

// serverClock is what is known about the clock of System.nanoTime on the server that leads.
type serverClock struct {
	rate float64 // by the clock of this process

	// If the rate is not 1, the clock showed nano at the time at.
	at   time.Time
	nano time.Duration
}

// real returns how long something takes that takes d by the server's clock.
func (c *serverClock) real(d time.Duration) time.Duration {
	return time.Duration(float64(d) / c.rate)
}

// nanoTime returns what the clock shows at a time.
func (c *serverClock) nanoTime(at time.Time) time.Duration {
	if c.rate != 1 {
		return c.nano + time.Duration(float64(at.Sub(c.at))*c.rate)
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano()) - time.Since(at)
}

// read finds out what the clock shows. Under libfaketime, a clock with a rate shows the same as the
// server's wall clock, and the leader notes that in each node that is written.
func (c *serverClock) read(ctx context.Context, m *session.Manager) error {
	if c.rate == 1 {
		return nil
	}
	s, err := m.Session(ctx)
	if err != nil {
		return err
	}
	node, err := s.Enter(ctx, session.NewNode{Dir: "/", Name: fmt.Sprintf("clock%d", serial.Add(1)), Fixed: true})
	if err != nil {
		return err
	}
	shortest := time.Hour
	for range 10 {
		before := time.Now()
		stat, err := s.Set(ctx, node.Path, nil, -1)
		if err != nil {
			return err
		}
		if took := time.Since(before); took < shortest {
			shortest = took
			c.at, c.nano = before.Add(took/2), time.Duration(stat.Mtime)*time.Millisecond
		}
	}
	return nil
}
