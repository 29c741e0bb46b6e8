package faultmatrix

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// In the rows of kept places ours takes the lock several times, so a script does that and not a taker. It
// makes all holds before the last, and returns the last one. It returns nil if there is none. Where the
// steps depend on what a script waits for, it waits no longer once the fault has struck.
type script func(ctx context.Context, c *cell) (hold, error)

// acquirer takes a lock that keeps its places.
type acquirer func(context.Context) (*queue.Lease, error)

// keeper makes one through ours.
type keeper func(c *cell, d time.Duration) (acquirer, error)

// keepFor is longer than a place is kept in any cell: that is for a session timeout at most.
const keepFor = time.Minute

func lazyMutex(c *cell, d time.Duration) (acquirer, error) {
	mx, err := zklock.New(c.ours, c.base, zklock.WithLazyRelease(d))
	return mx.Acquire, err
}

func lazyWriter(c *cell, d time.Duration) (acquirer, error) {
	rw, err := rwlock.New(c.ours, c.base, rwlock.WithLazyRelease(d))
	return rw.Acquire, err
}

// again uses the kept place again. The rival comes while the place is in use, which is then given up at the
// release.
func again(of keeper) script {
	return func(ctx context.Context, c *cell) (hold, error) {
		if err := c.use(ctx, of, keepFor); err != nil {
			return nil, err
		}
		if err := c.whileKept(ctx); err != nil {
			return nil, err
		}
		return c.takeBefore(ctx)
	}
}

// wanted gives the kept place up because the rival comes. It takes the lock again when the rival has left.
func wanted(ctx context.Context, c *cell) (hold, error) {
	if err := c.use(ctx, lazyMutex, keepFor); err != nil {
		return nil, err
	}
	if err := c.whileKept(ctx); err != nil {
		return nil, err
	}
	c.waiting.fire()
	select {
	case <-c.gone.ch:
	case <-ctx.Done():
		return nil, errors.New("the rival has not come and gone")
	}
	return c.take(ctx)
}

// keepWith makes the lock that keeps its places for d, and the directory.
func (c *cell) keepWith(ctx context.Context, of keeper, d time.Duration) error {
	s, err := c.site.holders.Session(ctx) // out of the way of the faults
	if err == nil {
		_, err = s.Create(ctx, c.base, nil, session.Container)
	}
	if err != nil {
		return err
	}
	acquire, err := of(c, d)
	c.acquire = acquire
	return err
}

// use makes that lock, takes it, and gives it back. The place is kept.
func (c *cell) use(ctx context.Context, of keeper, d time.Duration) error {
	if err := c.keepWith(ctx, of, d); err != nil {
		return err
	}
	h, err := c.take(ctx)
	if err != nil {
		return err
	}
	return errors.Join(c.sound(ctx, h), c.giveBack(ctx, h))
}

// take takes the lock that keeps its places, and tells the referee.
func (c *cell) take(ctx context.Context) (hold, error) {
	l, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	h := keeping{lease{l}}
	c.logf("we are in: %s", l.Path())
	return h, c.referee.enter(ctx, "we", h)
}

// takeBefore takes the lock, and waits until the rival is behind and we have been told of it.
func (c *cell) takeBefore(ctx context.Context) (hold, error) {
	h, err := c.take(ctx)
	if err != nil {
		return h, err
	}
	c.waiting.fire()
	select {
	case <-c.behind.ch:
	case <-ctx.Done():
		return h, ctx.Err()
	}
	if s, err := c.ours.Session(ctx); err == nil {
		_ = s.Sync(ctx, "/") // its answer comes behind the event; if it fails, the connection is gone
	}
	return h, nil
}

// whileKept is the moment in which a place is kept. It lets a fault begin.
func (c *cell) whileKept(ctx context.Context) error {
	c.kept.fire()
	if c.at != whileKept {
		return nil
	}
	select {
	case <-c.strike.hit:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeAgain takes the lock once more with the same object, after all.
func (c *cell) takeAgain(ctx context.Context) error {
	if c.acquire == nil {
		return nil
	}
	h, err := c.take(ctx)
	if err != nil {
		return fmt.Errorf("at last: %w", err)
	}
	return errors.Join(c.sound(ctx, h), c.giveBack(ctx, h))
}

// keeping is a hold whose place may be kept when it is released.
type keeping struct{ lease }

// standing has no node of a hold that was released: its place is no longer the holder's.
func (k keeping) standing(ctx context.Context, c *cell) ([]string, error) {
	if errors.Is(k.Err(), queue.ErrReleased) {
		return nil, nil
	}
	return k.lease.standing(ctx, c)
}
