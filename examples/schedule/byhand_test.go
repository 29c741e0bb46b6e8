package main

import (
	"context"
	"errors"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zklock"
)

// fireByHand is a cron job that skips when busy, without TryDo and package schedule. It does not know which ticks are
// done: a replica whose timer is late runs the job again.
func fireByHand(ctx context.Context, lock *zklock.Mutex, report func(context.Context) error) (err error) {
	lease, err := lock.TryAcquire(ctx)
	if errors.Is(err, queue.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { // also if ctx has ended, or report panics
		releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		released := lease.Release(releasing)
		if err == nil && !errors.Is(released, queue.ErrReleasePending) {
			err = released // if the lock was lost, another replica may have run the job at the same time
		}
	}()
	held, cancel := lease.Context(ctx) // ends when the lock is lost
	defer cancel()
	if err := report(held); err != nil {
		return errors.Join(err, context.Cause(held))
	}
	return nil
}
