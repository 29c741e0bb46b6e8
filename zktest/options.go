package zktest

import (
	"errors"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// An Option changes how [Start] and [New] set their server up.
type Option func(*config)

type config struct {
	listen         string // "": when an address is first asked for
	tick           time.Duration
	minSession     time.Duration // 0: two ticks
	maxSession     time.Duration // 0: twenty ticks
	containerCheck time.Duration
	containers     bool
	maxPacket      int
}

// WithListen has the server listen for TCP connections on an address,
// host:port, from the start; port 0 stands for any. Without it, the server
// listens on a port of 127.0.0.1 once [Server.Addr] or [Server.ConnectString]
// is called, and touches no network before that.
func WithListen(addr string) Option {
	return func(c *config) { c.listen = addr }
}

// WithTick sets ZooKeeper's unit of time: sessions expire on multiples of it.
// The default is ZooKeeper's, 2s.
func WithTick(d time.Duration) Option {
	return func(c *config) { c.tick = d }
}

// WithSessionTimeouts sets the shortest and the longest session timeout that a
// client can negotiate. The default is ZooKeeper's, two and twenty ticks.
func WithSessionTimeouts(shortest, longest time.Duration) Option {
	return func(c *config) { c.minSession, c.maxSession = shortest, longest }
}

// WithContainerCheck sets how often the server looks for empty container nodes
// and expired TTL nodes to delete. The default is ZooKeeper's, one minute. See
// [Server.ReapContainers].
func WithContainerCheck(d time.Duration) Option {
	return func(c *config) { c.containerCheck = d }
}

// WithoutContainers makes a server that knows no container nodes, as before
// ZooKeeper 3.5.1: it answers their creation as it does any request it does not
// know, with the code for unimplemented, and closes the connection.
func WithoutContainers() Option {
	return func(c *config) { c.containers = false }
}

// WithMaxPacket sets the longest request, in bytes: jute.maxbuffer. The
// connection of a client that sends a longer one is closed. The default is
// ZooKeeper's, 1 MiB less one byte.
func WithMaxPacket(n int) Option {
	return func(c *config) { c.maxPacket = n }
}

func newConfig(opts []Option) (config, error) {
	c := config{
		tick:           2 * time.Second,
		containerCheck: time.Minute,
		containers:     true,
		maxPacket:      1<<20 - 1,
	}
	for _, opt := range opts {
		if opt == nil {
			return c, errors.New("zktest: nil option")
		}
		opt(&c)
	}
	if err := wholeMillis("WithTick", c.tick); err != nil {
		return c, err
	}
	if c.minSession == 0 && c.maxSession == 0 {
		c.minSession, c.maxSession = 2*c.tick, 20*c.tick
	}
	if err := errors.Join(
		wholeMillis("WithSessionTimeouts", c.minSession),
		wholeMillis("WithSessionTimeouts", c.maxSession),
		wholeMillis("WithContainerCheck", c.containerCheck),
	); err != nil {
		return c, err
	}
	if c.minSession > c.maxSession {
		return c, fmt.Errorf("zktest: shortest session timeout %v is more than the longest, %v", c.minSession, c.maxSession)
	}
	if c.maxPacket < 64 || c.maxPacket > wire.MaxFrame {
		return c, fmt.Errorf("zktest: WithMaxPacket(%d): want 64 to %d", c.maxPacket, wire.MaxFrame)
	}
	return c, nil
}
