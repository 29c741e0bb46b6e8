package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/referee"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zklock"
)

var errUnbounded = errors.New("the context of a hold has not ended by the time of WithMaxHold")

// bounded works under a mutex whose holds and waiters are bounded. Half of its work does not look at its context.
func (w *worker) bounded(ctx context.Context, p referee.Place, mx *zklock.Mutex) error {
	looks := w.rng.IntN(2) == 0
	unbounded := false
	err := mx.Do(ctx, func(ctx context.Context) error {
		var until <-chan struct{}
		if looks {
			until = ctx.Done()
		}
		began := time.Now()
		w.during(p, 1, "Do with bounds", mx.Held, until)
		unbounded = time.Since(began) >= maxHold && ctx.Err() == nil
		if looks {
			return context.Cause(ctx)
		}
		return nil
	})
	switch {
	case unbounded:
		return errUnbounded
	case !looks && errors.Is(err, queue.ErrHeldTooLong):
		return fmt.Errorf("work that was done under the lock fails: %v", err) //nolint:errorlint // it must not match
	}
	return err
}
