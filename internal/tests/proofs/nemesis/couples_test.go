//go:build linux

package nemesis

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// couple is a holder of a lock through the follower, and its rival.
type couple struct {
	held    *held
	rival   *rival
	timeout time.Duration
	style   style
	own     string // a node to write
	early   bool   // lost before the cut
}

// enter connects to the follower, takes a lock of its own, and has a rival wait for it.
func (l *clockLab) enter(ctx context.Context, c *couple, told bool) error {
	dir := fmt.Sprintf("/lock%d", l.serial.Add(1))
	var opts []session.Option
	if told {
		opts = append(opts, session.WithTickTime(labTick))
	}
	m, err := l.connect(ctx, l.Addr(l.follower), c.timeout, opts...)
	if err != nil {
		return err
	}
	mx, err := zklock.New(m, dir)
	if err != nil {
		return err
	}
	if c.held, err = l.acquire(ctx, mx); err != nil {
		return err
	}
	if granted := c.held.session.Timeout(); granted != c.timeout {
		return fmt.Errorf("granted a timeout of %v instead of %v", granted, c.timeout)
	}
	if c.own, err = c.held.session.Create(ctx, dir+"-own", nil, session.Persistent); err != nil {
		return err
	}
	waiter, err := zklock.New(l.rivals, dir)
	if err != nil {
		return err
	}
	c.rival = l.contendWithin(ctx, waiter)
	return queued(ctx, waiter)
}

// write sends one write and waits for its answer. A lost answer does not matter here.
func (c *couple) write(ctx context.Context) { _, _ = c.held.session.Set(ctx, c.own, nil, -1) }

// work reads and writes without pause until ctx ends, so that at any time something was
// answered just before.
func (c *couple) work(ctx context.Context) {
	var requests sync.WaitGroup
	defer requests.Wait()
	for pause(ctx, 50*time.Millisecond) {
		requests.Go(func() { c.write(ctx) })
		requests.Go(func() { _, _, _ = c.held.session.Get(ctx, c.own) })
	}
}
