package faultmatrix

import (
	"context"
	"errors"
	"fmt"
)

// playOurs runs the contender that the fault meets: it acquires, holds and releases, or is cancelled.
func (c *cell) playOurs(ctx context.Context) error {
	defer c.returned.fire()
	defer c.waiting.fire()
	if c.cancels {
		return c.giveUp(ctx)
	}
	h, err := c.subject.ours(whenWaiting(ctx, &c.waiting), c.ours, c.base)
	c.returned.fire()
	if err != nil {
		return fmt.Errorf("acquire: %w", err)
	}
	c.logf("we are in")
	err = c.enters("we", h)
	c.waiting.fire()
	if err == nil {
		err = c.work(ctx, h)
	}
	return errors.Join(err, c.release(ctx, h))
}

// work keeps the lock until the fault is over, if it has struck, or until the lock is lost.
func (c *cell) work(ctx context.Context, h *hold) error {
	if err := h.settle(ctx); err != nil && h.Err() == nil {
		return fmt.Errorf("held, but: %w", err)
	}
	if err := c.backed(ctx, h); err != nil {
		return err
	}
	c.holding.fire()
	if c.at == whileHolding {
		select {
		case <-c.strike.hit:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if !c.strike.struck() {
		return nil // that will be at the release
	}
	select {
	case <-c.strike.over:
	case <-h.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	c.logf("worked: %v", h.Err())
	return c.backed(ctx, h)
}

// giveUp is cancelled while it waits, or when the fault strikes before.
func (c *cell) giveUp(ctx context.Context) error {
	waiting, cancel := context.WithCancel(whenWaiting(ctx, &c.waiting))
	defer cancel()
	comes := c.waiting.ch
	if c.at == whileWaiting {
		comes = nil // what strikes then comes before
	}
	go func() {
		select {
		case <-comes:
		case <-c.strike.hit:
		case <-waiting.Done():
		}
		c.logf("we give up")
		cancel()
	}()
	h, err := c.subject.ours(waiting, c.ours, c.base)
	switch {
	case err == nil:
		err = c.enters("we", h)
		return errors.Join(errors.New("let in while the first held"), err, h.Release(ctx))
	case !errors.Is(err, context.Canceled):
		return fmt.Errorf("cancelled acquire: %w", err)
	}
	c.logf("we have given up")
	return nil
}
