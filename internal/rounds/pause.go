package rounds

import (
	"context"
	"time"
)

// Pause waits for d. If ctx ends before, it returns the error of ctx.
func Pause(ctx context.Context, d time.Duration) error { return Until(ctx, nil, d) }

// Until waits for d, or until end is closed. If ctx ends before, it returns the error of ctx.
func Until(ctx context.Context, end <-chan struct{}, d time.Duration) error {
	if d <= 0 { // timers that are due at once can crash the race detector: see .ci/race
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
