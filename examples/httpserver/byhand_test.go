package main

import (
	"context"
	"errors"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zklock"
)

// deductByHand is deduct without Do, WithMaxWait and Keyed: each bound has a context of its own, and the work has to
// be told of the loss.
func (s *shop) deductByHand(ctx context.Context, id string) (r receipt, err error) {
	if _, err := s.stock.left(ctx, id); err != nil {
		return receipt{}, err
	}
	lock, err := zklock.New(s.m, "/stock/"+zklock.EscapePath(id))
	if err != nil {
		return receipt{}, err
	}
	waiting, cancel := context.WithTimeout(ctx, s.wait)
	lease, err := lock.Acquire(waiting)
	cancel()
	if err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = errors.Join(queue.ErrMaxWait, err) // the deadline was that of the wait, and not the client's
		}
		return receipt{}, err
	}
	defer func() { // also if the client has gone away, or the work panics
		releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := lease.Release(releasing); err != nil {
			s.log.Info("release", "err", err)
		}
	}()
	working, cancel := context.WithTimeout(ctx, maxWork)
	defer cancel()
	held, cancel := lease.Context(working) // ends when the lock is lost
	defer cancel()
	r, err = s.sell(held, id)
	if cause := context.Cause(held); err != nil && cause != nil {
		return receipt{}, cause
	}
	return r, err
}
