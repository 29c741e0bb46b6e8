package faultmatrix

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// In the rows of kept places ours takes the lock several times, so a script does that and not a taker. It
// makes all holds before the last, and returns the last one. It returns nil if there is none. Where the
// steps depend on what a script waits for, it waits no longer once the fault has struck. The rows of
// connections have a script, too: see reconnects.
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

func lazyReader(c *cell, d time.Duration) (acquirer, error) {
	rw, err := rwlock.New(c.ours, c.base, rwlock.WithLazyRelease(d))
	return rw.Reader().Acquire, err
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

// ownReader keeps a place of readers, which is in the way when ours then takes the lock as a writer.
func ownReader(ctx context.Context, c *cell) (hold, error) {
	if err := c.use(ctx, lazyReader, keepFor); err != nil {
		return nil, err
	}
	if err := c.whileKept(ctx); err != nil {
		return nil, err
	}
	acquire, err := lazyWriter(c, keepFor)
	if err != nil {
		return nil, err
	}
	c.acquire = acquire
	return c.takeBefore(ctx)
}

// timeOver takes the lock again when the time of the kept place is over.
func timeOver(ctx context.Context, c *cell) (hold, error) {
	if err := c.use(ctx, lazyMutex, oneWay); err != nil {
		return nil, err
	}
	if err := c.emptyAgain(ctx); err != nil {
		return nil, err
	}
	return c.takeBefore(ctx)
}

// emptyAgain waits until no contender is left.
func (c *cell) emptyAgain(ctx context.Context) error {
	for {
		nodes, err := c.site.contenders(ctx, c.base)
		if err != nil || len(nodes) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("these are left: %v", nodes)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// closing closes ours while its place is kept.
func closing(ctx context.Context, c *cell) (hold, error) {
	if err := c.use(ctx, lazyMutex, keepFor); err != nil {
		return nil, err
	}
	if err := c.whileKept(ctx); err != nil {
		return nil, err
	}
	err := c.ours.Close()
	c.logf("closed: %v", err)
	if c.strike.struck() {
		err = nil // no server may have confirmed it
	}
	return nil, err
}

// readers share one place: one takes it, and another joins when a reader of another process has come
// beside them. When that one has left, they keep the place, and use it again. Then the rival comes. Each
// event makes them list the directory again.
func readers(ctx context.Context, c *cell) (last hold, err error) {
	if err := c.keepWith(ctx, lazyReader, keepFor); err != nil {
		return nil, err
	}
	one, err := c.take(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.sound(ctx, one); err != nil {
		return nil, err
	}
	leave, err := c.beside(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.listed(ctx, 2), c.join(ctx, one, leave), c.whileKept(ctx)); err != nil {
		return nil, err
	}
	last, err = c.takeBefore(ctx)
	return last, errors.Join(err, c.listed(ctx, 4))
}

// join takes the place for one reader more, and then all leave. Once the fault has struck, a writer can be
// between the readers, so the first ones do not wait for the last one.
func (c *cell) join(ctx context.Context, one hold, leave func() error) error {
	var two hold
	var joining errgroup.Group
	in := make(chan struct{})
	joining.Go(func() (err error) {
		defer close(in)
		two, err = c.take(ctx)
		return err
	})
	select {
	case <-in:
	case <-c.strike.hit:
	}
	err := errors.Join(leave(), c.listed(ctx, 3), c.giveBack(ctx, one), joining.Wait())
	if two == nil {
		return err
	}
	return errors.Join(err, c.sound(ctx, two), c.giveBack(ctx, two))
}

// beside lets a reader of another process in, and returns what gives that hold up. If a writer is in the
// way, which comes when the fault has struck, beside lets nobody in.
func (c *cell) beside(ctx context.Context) (leave func() error, err error) {
	rw, err := rwlock.New(c.site.rivals, c.base)
	if err != nil {
		return nil, err
	}
	l, err := rw.Reader().TryAcquire(ctx)
	switch {
	case errors.Is(err, queue.ErrBusy):
		return func() error { return nil }, nil
	case err != nil:
		return nil, fmt.Errorf("beside: %w", err)
	}
	return func() error { return l.Release(ctx) }, nil
}

// listed waits until ours has asked for the n-th listing, unless the fault has struck or the connection was
// lost.
func (c *cell) listed(ctx context.Context, n int) error {
	lists := func(r zktest.Request) bool { return r.Op == zktest.OpGetChildren2 && r.Path == c.base }
	for c.proxy.Count(lists) < n && !c.strike.struck() && !c.reconnected() {
		select {
		case <-time.After(oneWay):
		case <-ctx.Done():
			return fmt.Errorf("no listing %d", n)
		}
	}
	return nil
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
	if c.acquire == nil || c.closed() {
		return nil
	}
	h, err := c.take(ctx)
	if err != nil {
		return fmt.Errorf("at last: %w", err)
	}
	return errors.Join(c.sound(ctx, h), c.giveBack(ctx, h))
}

// closed reports whether ours was closed.
func (c *cell) closed() bool { return c.ours.State() == session.Closed }

// keeping is a hold whose place may be kept when it is released.
type keeping struct{ lease }

// standing has no node of a hold that was released: its place is no longer the holder's.
func (k keeping) standing(ctx context.Context, c *cell) ([]string, error) {
	if errors.Is(k.Err(), queue.ErrReleased) {
		return nil, nil
	}
	return k.lease.standing(ctx, c)
}
