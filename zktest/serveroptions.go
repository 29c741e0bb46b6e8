package zktest

import (
	"errors"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
	"github.com/turnstile-go/turnstile/zktest/internal/quorum"
)

// An Option configures the server that [Start] or [New] makes.
type Option func(*config)

type config struct {
	quorum.Config
	listen    string // "": when an address is first asked for
	maxPacket int
}

// Servers sets the number of servers of the ensemble, which must be odd and less than 64. The
// default is 1, a server alone. See [Server].
func Servers(n int) Option {
	return func(c *config) { c.Servers = n }
}

// WithSyncLimit sets ZooKeeper's syncLimit: a leader and a follower give each other up after this
// many ticks without a message. The default is 5.
func WithSyncLimit(ticks int) Option {
	return func(c *config) { c.SyncLimit = ticks }
}

// WithElectionTime sets how long servers take to elect a leader once a majority of them can reach
// each other, and how long a server takes to join a leader. The default is 200ms.
func WithElectionTime(d time.Duration) Option {
	return func(c *config) { c.Election = d }
}

// WithListen has the server listen for TCP connections at an address, host:port, from the start.
// Port 0 stands for any free port. In an ensemble, server 0 listens at the address, and the others
// on free ports of the same host. Without this option, a server does not use the network until
// [Server.Addr], [Server.ServerAddr] or [Server.ConnectString] is called. It then listens on a free
// port of 127.0.0.1.
func WithListen(addr string) Option {
	return func(c *config) { c.listen = addr }
}

// WithTick sets the tick, ZooKeeper's unit of time. Sessions expire on ticks of the leader's session
// tracker. The default is ZooKeeper's, 2s.
func WithTick(d time.Duration) Option {
	return func(c *config) { c.Tick = d }
}

// WithSessionTimeouts sets the shortest and the longest session timeout that a client can negotiate.
// The default is ZooKeeper's: 2 and 20 ticks.
func WithSessionTimeouts(shortest, longest time.Duration) Option {
	return func(c *config) { c.MinSession, c.MaxSession = shortest, longest }
}

// WithContainerCheck sets how often the server deletes empty container nodes and expired TTL nodes.
// The default is ZooKeeper's, one minute. See [Server.ReapContainers].
func WithContainerCheck(d time.Duration) Option {
	return func(c *config) { c.ContainerCheck = d }
}

// WithoutContainers makes a server without container nodes, like ZooKeeper before 3.5.1. It answers
// a request to create one like any unknown request: with the code for unimplemented, after which it
// closes the connection.
func WithoutContainers() Option {
	return func(c *config) { c.Containers = false }
}

// WithMaxPacket sets the length of the longest request in bytes, ZooKeeper's jute.maxbuffer. The
// server closes the connection of a client that sends a longer one. The default is ZooKeeper's,
// 1 MiB less one byte.
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
