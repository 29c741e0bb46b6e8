package zktest

import (
	"errors"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
	"github.com/turnstile-go/turnstile/zktest/internal/quorum"
)

// An Option changes how [Start] and [New] set their server up.
type Option func(*config)

type config struct {
	quorum.Config
	listen    string // "": when an address is first asked for
	maxPacket int
}

// Servers makes an ensemble of n servers. n must be odd and below 64. The default
// is 1, a server alone. See [Server].
func Servers(n int) Option {
	return func(c *config) { c.Servers = n }
}

// WithSyncLimit sets after how many ticks of silence the servers of an ensemble
// give each other up: ZooKeeper's syncLimit. The default is 5.
func WithSyncLimit(ticks int) Option {
	return func(c *config) { c.SyncLimit = ticks }
}

// WithElectionTime sets how long servers need to elect a leader once enough of them
// can reach each other, and how long a server needs to join a leader. The default
// is 200ms.
func WithElectionTime(d time.Duration) Option {
	return func(c *config) { c.Election = d }
}

// WithListen has the server listen for TCP connections on an address,
// host:port, from the start; port 0 stands for any. In an ensemble, this is
// server 0, and the others listen on any port of the same host. Without it, the server
// listens on a port of 127.0.0.1 once [Server.Addr] or [Server.ConnectString]
// is called, and touches no network before that.
func WithListen(addr string) Option {
	return func(c *config) { c.listen = addr }
}

// WithTick sets ZooKeeper's unit of time: sessions expire on multiples of it.
// The default is ZooKeeper's, 2s.
func WithTick(d time.Duration) Option {
	return func(c *config) { c.Tick = d }
}

// WithSessionTimeouts sets the shortest and the longest session timeout that a
// client can negotiate. The default is ZooKeeper's, two and twenty ticks.
func WithSessionTimeouts(shortest, longest time.Duration) Option {
	return func(c *config) { c.MinSession, c.MaxSession = shortest, longest }
}

// WithContainerCheck sets how often the server looks for empty container nodes
// and expired TTL nodes to delete. The default is ZooKeeper's, one minute. See
// [Server.ReapContainers].
func WithContainerCheck(d time.Duration) Option {
	return func(c *config) { c.ContainerCheck = d }
}

// WithoutContainers makes a server that knows no container nodes, as before
// ZooKeeper 3.5.1: it answers their creation as it does any request it does not
// know, with the code for unimplemented, and closes the connection.
func WithoutContainers() Option {
	return func(c *config) { c.Containers = false }
}

// WithMaxPacket sets the longest request, in bytes: jute.maxbuffer. The
// connection of a client that sends a longer one is closed. The default is
// ZooKeeper's, 1 MiB less one byte.
func WithMaxPacket(n int) Option {
	return func(c *config) { c.maxPacket = n }
}

func newConfig(opts []Option) (config, error) {
	c := config{
		Config: quorum.Config{
			Servers:        1,
			SyncLimit:      5,
			Election:       200 * time.Millisecond,
			Tick:           2 * time.Second,
			ContainerCheck: time.Minute,
			Containers:     true,
		},
		maxPacket: 1<<20 - 1,
	}
	for _, opt := range opts {
		if opt == nil {
			return c, errors.New("zktest: nil option")
		}
		opt(&c)
	}
	if err := wholeMillis("WithTick", c.Tick); err != nil {
		return c, err
	}
	if c.MinSession == 0 && c.MaxSession == 0 {
		c.MinSession, c.MaxSession = 2*c.Tick, 20*c.Tick
	}
	if err := errors.Join(
		wholeMillis("WithSessionTimeouts", c.MinSession),
		wholeMillis("WithSessionTimeouts", c.MaxSession),
		wholeMillis("WithContainerCheck", c.ContainerCheck),
	); err != nil {
		return c, err
	}
	if c.MinSession > c.MaxSession {
		return c, fmt.Errorf("zktest: shortest session timeout %v is more than the longest, %v", c.MinSession, c.MaxSession)
	}
	if c.Servers < 1 || c.Servers > 63 || c.Servers%2 == 0 {
		return c, fmt.Errorf("zktest: Servers(%d): want an odd number from 1 to 63", c.Servers)
	}
	if c.SyncLimit < 1 {
		return c, fmt.Errorf("zktest: WithSyncLimit(%d): want at least 1", c.SyncLimit)
	}
	if c.Election < 0 {
		return c, fmt.Errorf("zktest: WithElectionTime(%v): want no less than 0", c.Election)
	}
	if c.maxPacket < 64 || c.maxPacket > wire.MaxFrame {
		return c, fmt.Errorf("zktest: WithMaxPacket(%d): want 64 to %d", c.maxPacket, wire.MaxFrame)
	}
	return c, nil
}
