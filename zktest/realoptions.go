package zktest

import (
	"errors"
	"fmt"
	"time"
)

// A RealOption changes how [StartReal] and [NewReal] set their servers up.
type RealOption func(*realConfig)

type realConfig struct {
	nodes          int
	tick           time.Duration
	containerCheck time.Duration
	minSession     time.Duration // 0: two ticks
	maxSession     time.Duration
}

// Nodes sets the number of servers, which must be odd. The default is 1: a
// standalone server. More form an ensemble.
func Nodes(n int) RealOption {
	return func(c *realConfig) { c.nodes = n }
}

// TickTime sets ZooKeeper's unit of time, from which most of its timeouts
// follow; sessions expire on multiples of it. The default is 500ms.
func TickTime(d time.Duration) RealOption {
	return func(c *realConfig) { c.tick = d }
}

// ContainerCheck sets how often the server looks for empty container nodes and
// expired TTL nodes to delete. The default is one minute, as ZooKeeper's.
func ContainerCheck(d time.Duration) RealOption {
	return func(c *realConfig) { c.containerCheck = d }
}

// MinSessionTimeout sets the shortest session timeout a client can negotiate.
// The default is two ticks.
func MinSessionTimeout(d time.Duration) RealOption {
	return func(c *realConfig) { c.minSession = d }
}

// MaxSessionTimeout sets the longest session timeout a client can negotiate.
// The default is 60s.
func MaxSessionTimeout(d time.Duration) RealOption {
	return func(c *realConfig) { c.maxSession = d }
}

// newRealConfig applies the options and checks what comes out.
func newRealConfig(opts []RealOption) (realConfig, error) {
	c := realConfig{
		nodes:          1,
		tick:           500 * time.Millisecond,
		containerCheck: time.Minute,
		maxSession:     time.Minute,
	}
	for _, opt := range opts {
		opt(&c)
	}
	if c.nodes < 1 || c.nodes%2 == 0 {
		return c, fmt.Errorf("zktest: Nodes(%d): want an odd number of servers", c.nodes)
	}
	if err := wholeMillis("TickTime", c.tick); err != nil {
		return c, err
	}
	if c.minSession == 0 {
		c.minSession = 2 * c.tick
	}
	if err := errors.Join(
		wholeMillis("ContainerCheck", c.containerCheck),
		wholeMillis("MinSessionTimeout", c.minSession),
		wholeMillis("MaxSessionTimeout", c.maxSession),
	); err != nil {
		return c, err
	}
	if c.minSession > c.maxSession {
		return c, fmt.Errorf("zktest: shortest session timeout %v is more than the longest, %v", c.minSession, c.maxSession)
	}
	return c, nil
}

// wholeMillis checks a duration that ZooKeeper takes in milliseconds, as a
// Java int.
func wholeMillis(name string, d time.Duration) error {
	const most = (1<<31 - 1) * time.Millisecond
	if d < time.Millisecond || d > most || d%time.Millisecond != 0 {
		return fmt.Errorf("zktest: %s(%v): want whole milliseconds, from 1ms to %v", name, d, most)
	}
	return nil
}
