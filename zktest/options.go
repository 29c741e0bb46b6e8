package zktest

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// A CommonOption is an [Option] for the server in this process, and a [RealOption] for real servers.
type CommonOption interface {
	Option
	RealOption
}

type commonOption func(*commonConfig) error

func (o commonOption) apply(c *config) error         { return o(&c.commonConfig) }
func (o commonOption) applyReal(c *realConfig) error { return o(&c.commonConfig) }

// commonConfig is what both kinds of servers can be told.
type commonConfig struct {
	servers        int
	tick           time.Duration
	containerCheck time.Duration
	minSession     time.Duration // 0: not told
	maxSession     time.Duration // 0: not told
}

// Servers sets the number of servers, which must be odd. In this process it must also be less than 64.
// The default is 1, a server alone. Several servers form an ensemble. See [Server] and [Ensemble].
func Servers(n int) CommonOption {
	return commonOption(func(c *commonConfig) error {
		c.servers = n
		if n < 1 || n%2 == 0 {
			return fmt.Errorf("zktest: Servers(%d): want an odd number of servers", n)
		}
		return nil
	})
}

// TickTime sets the tick, ZooKeeper's unit of time. Most of its timeouts are multiples of a tick, and
// sessions expire on ticks of the leader's session tracker. The default is ZooKeeper's, 2s, for the
// server in this process, and 500ms for real servers.
func TickTime(d time.Duration) CommonOption {
	return millis("TickTime", d, func(c *commonConfig) *time.Duration { return &c.tick })
}

// ContainerCheck sets how often empty container nodes and expired TTL nodes are deleted. The default
// is ZooKeeper's, one minute.
func ContainerCheck(d time.Duration) CommonOption {
	return millis("ContainerCheck", d, func(c *commonConfig) *time.Duration { return &c.containerCheck })
}

// MinSessionTimeout sets the shortest session timeout that a client can negotiate. The default is
// ZooKeeper's, two ticks.
func MinSessionTimeout(d time.Duration) CommonOption {
	return millis("MinSessionTimeout", d, func(c *commonConfig) *time.Duration { return &c.minSession })
}

// MaxSessionTimeout sets the longest session timeout that a client can negotiate. The default is
// ZooKeeper's, 20 ticks, for the server in this process, and 60s for real servers.
func MaxSessionTimeout(d time.Duration) CommonOption {
	return millis("MaxSessionTimeout", d, func(c *commonConfig) *time.Duration { return &c.maxSession })
}

func millis(name string, d time.Duration, field func(*commonConfig) *time.Duration) commonOption {
	return func(c *commonConfig) error {
		*field(c) = d
		return wholeMillis(name, d)
	}
}

// wholeMillis checks a duration that ZooKeeper reads as a number of milliseconds in a Java int.
func wholeMillis(name string, d time.Duration) error {
	const most = (1<<31 - 1) * time.Millisecond
	if d < time.Millisecond || d > most || d%time.Millisecond != 0 {
		return fmt.Errorf("zktest: %s(%v): want whole milliseconds, from 1ms to %v", name, d, most)
	}
	return nil
}

// sessionTimeouts sets the session timeouts that no option has set, and checks them. The default of the
// longest is an argument.
func (c *commonConfig) sessionTimeouts(longest time.Duration) error {
	c.minSession = cmp.Or(c.minSession, 2*c.tick)
	c.maxSession = cmp.Or(c.maxSession, longest)
	if c.minSession > c.maxSession {
		return fmt.Errorf("zktest: shortest session timeout %v is more than the longest, %v", c.minSession, c.maxSession)
	}
	// With a long tick, the defaults can be more than ZooKeeper reads.
	return errors.Join(wholeMillis("MinSessionTimeout", c.minSession), wholeMillis("MaxSessionTimeout", c.maxSession))
}
