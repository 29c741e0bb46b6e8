package core

import (
	"context"
	"sync"
)

// creates keeps two things apart, path by path: the creates of a session, and the searches for
// nodes of cancelled creates. While a create of a path is in flight, a node of this session at
// that path can be either the node of that create or the node that a search is for.
type creates struct {
	mu sync.Mutex
	m  map[string]*creating // by path as asked for; only those in use
}

type creating struct {
	inFlight int           // creates
	searches int           // running, or waiting until no create is in flight
	busy     bool          // a search is running
	users    int           // of this value
	changed  chan struct{} // closed and replaced at each change; nil if no goroutine waits
}

// begin waits until no search runs or waits at the path, or returns ctx's error. If a create did
// not wait for a waiting search, a stream of creates could keep the search waiting forever.
func (c *creates) begin(ctx context.Context, path string) error {
	return c.enter(ctx, path, func(one *creating) bool {
		if one.searches > 0 {
			return false
		}
		one.inFlight++
		return true
	})
}

// end is called once for each begin that succeeded.
func (c *creates) end(path string) { c.leave(path, func(one *creating) { one.inFlight-- }) }

// alone waits until no create of the path is in flight, and keeps others from beginning.
func (c *creates) alone(ctx context.Context, path string) error {
	_ = c.enter(ctx, path, func(one *creating) bool { one.searches++; return true })
	err := c.enter(ctx, path, func(one *creating) bool {
		if one.busy || one.inFlight > 0 {
			return false
		}
		one.busy = true
		return true
	})
	if err != nil {
		c.leave(path, func(one *creating) { one.searches-- })
	}
	return err
}

// shared is called once for each alone that succeeded.
func (c *creates) shared(path string) {
	c.leave(path, func(one *creating) { one.searches--; one.busy = false })
}

// enter waits until try returns true.
func (c *creates) enter(ctx context.Context, path string, try func(*creating) bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = make(map[string]*creating)
	}
	one := c.m[path]
	if one == nil {
		one = new(creating)
		c.m[path] = one
	}
	one.users++
	defer c.dropLocked(path, one)
	for !try(one) {
		if one.changed == nil {
			one.changed = make(chan struct{})
		}
		changed := one.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		c.mu.Lock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (c *creates) leave(path string, change func(*creating)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.m[path]
	one.users++
	change(one)
	if one.changed != nil {
		close(one.changed)
		one.changed = nil
	}
	c.dropLocked(path, one)
}

func (c *creates) dropLocked(path string, one *creating) {
	if one.users--; one.users == 0 && one.inFlight == 0 && one.searches == 0 {
		delete(c.m, path)
	}
}
