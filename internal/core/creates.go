package core

import (
	"context"
	"math"
	"sync"

	"golang.org/x/sync/semaphore"
)

// creates keeps two things apart, path by path: the creates of a session, and the searches for
// nodes of cancelled creates. While a create of a path is in flight, a node of this session at
// that path can be either the node of that create or the node that a search is for.
type creates struct {
	mu sync.Mutex
	m  map[string]*creating // by path as asked for; only those in use
}

// creating is a path. First come, first served: a stream of creates cannot keep a search waiting forever.
type creating struct {
	turn  *semaphore.Weighted // a create takes one, a search takes all
	users int                 // that have a turn, or wait for one
}

const (
	oneCreate = 1
	oneSearch = math.MaxInt64
)

// begin waits until no search runs or waits at the path, or returns ctx's error.
func (c *creates) begin(ctx context.Context, path string) error { return c.enter(ctx, path, oneCreate) }

// end is called once for each begin that succeeded.
func (c *creates) end(path string) { c.leave(path, oneCreate) }

// alone waits until no create of the path is in flight, and keeps others from beginning.
func (c *creates) alone(ctx context.Context, path string) error { return c.enter(ctx, path, oneSearch) }

// shared is called once for each alone that succeeded.
func (c *creates) shared(path string) { c.leave(path, oneSearch) }

func (c *creates) enter(ctx context.Context, path string, weight int64) error {
	err := c.at(path).turn.Acquire(ctx, weight)
	if err != nil {
		c.leave(path, 0)
	}
	return err
}

// at returns a path, which one more uses.
func (c *creates) at(path string) *creating {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = make(map[string]*creating)
	}
	one := c.m[path]
	if one == nil {
		one = &creating{turn: semaphore.NewWeighted(oneSearch)}
		c.m[path] = one
	}
	one.users++
	return one
}

func (c *creates) leave(path string, weight int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.m[path]
	one.turn.Release(weight)
	if one.users--; one.users == 0 {
		delete(c.m, path)
	}
}
