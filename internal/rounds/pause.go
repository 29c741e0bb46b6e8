package rounds

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Untiring returns the next wait of b for work that is never given up. After b has said stop, it
// begins again.
func Untiring(b backoff.BackOff) time.Duration {
	d := b.NextBackOff()
	if d == backoff.Stop {
		b.Reset()
		d = b.NextBackOff()
	}
	if d == backoff.Stop { // b always says stop
		d = time.Second
	}
	return d
}

// Pause waits for d. If ctx ends before, it returns the error of ctx.
func Pause(ctx context.Context, d time.Duration) error { return Until(ctx, nil, d) }

// Until waits for d, or until end is closed. If ctx ends before, it returns the error of ctx.
func Until(ctx context.Context, end <-chan struct{}, d time.Duration) error {
	if d <= 0 {
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

// Brief returns a New for a [Pace] in which no wait is longer than a second. Other waits are those of newBackOff.
func Brief(newBackOff func() backoff.BackOff) func() backoff.BackOff {
	return func() backoff.BackOff { return brief{newBackOff()} }
}

type brief struct{ backoff.BackOff }

// NextBackOff returns the next wait, or backoff.Stop, which is less than zero.
func (b brief) NextBackOff() time.Duration { return min(b.BackOff.NextBackOff(), longest) }
