package zktest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/quorum"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// An Option configures the server that [Start] or [New] makes. Every [CommonOption] is one too. Start
// and New fail if an option is nil or has a bad value.
type Option interface{ apply(*config) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

type config struct {
	commonConfig
	syncLimit int // ticks
	rate      float64
	election  time.Duration
	release   znode.Release
	phases    []time.Duration // of the servers' session trackers, the first ones; for tests
	listen    string          // "": when an address is first asked for
	maxPacket int
	extra     int // that servers read from their logs beyond maxPacket; 0: as much again
	outstand  int
	passwords map[string]string // of SASL; nil: there is none
	needsSASL bool
}

// SyncLimit sets ZooKeeper's syncLimit: a leader and a follower give each other up after this many
// ticks without a message. The default is 5.
func SyncLimit(ticks int) Option {
	return option(func(c *config) error {
		c.syncLimit = ticks
		if ticks < 1 {
			return fmt.Errorf("zktest: SyncLimit(%d): want at least 1", ticks)
		}
		return nil
	})
}

// ElectionTime sets how long servers take to elect a leader once a majority of them can reach each
// other, and how long a server takes to join a leader. The default is 200ms.
func ElectionTime(d time.Duration) Option {
	return option(func(c *config) error {
		c.election = d
		if d < 0 {
			return fmt.Errorf("zktest: ElectionTime(%v): want no less than 0", d)
		}
		return nil
	})
}

// ClockRate sets how fast the servers' clocks run, by the clock of this process. With 1.02 they are fast
// by two percent: a session that was granted 10s, as its client knows, lasts 9.8s. Ticks, session timeouts
// and SyncLimit go by the servers' clocks, the other options by the clock of this process. The default is
// 1.
func ClockRate(rate float64) Option {
	return option(func(c *config) error {
		c.rate = rate
		if !(rate >= 0.1 && rate <= 10) { // nor a NaN
			return fmt.Errorf("zktest: ClockRate(%v): want 0.1 to 10", rate)
		}
		return nil
	})
}

// Listen has the server listen for TCP connections at an address, host:port, from the start. Port 0
// stands for any free port. In an ensemble, server 0 listens at the address, and the others on free
// ports of the same host. Without this option, a server does not use the network until [Server.Addr],
// [Server.ServerAddr] or [Server.ConnectString] is called. It then listens on a free port of
// 127.0.0.1.
func Listen(addr string) Option {
	return option(func(c *config) error { c.listen = addr; return nil })
}

// Version sets which version of ZooKeeper the server imitates: "3.8", which is the default, or "3.9". It
// answers as 3.8.0 and 3.9.6 do, which are the releases that it is compared with. They differ in this:
//
//   - In 3.9, exists needs the READ permission. (So it does from 3.8.4 on.)
//   - In 3.9, a watch event has the number of its transaction.
//   - In 3.9, a write that cannot be parsed gets no transaction number, and a multi with flags that
//     do not exist cannot be parsed.
//   - In 3.9, the answer to a create2 within a multi has a stat.
//   - In 3.9, a client can have watches of several modes on one path, and remove those of one mode.
//   - In 3.9.6, but not in 3.9.3, a client that sets a watch again after it has reconnected needs the READ
//     permission to hear what it has missed.
func Version(line string) Option {
	return option(func(c *config) error {
		release, ok := znode.Releases[line]
		if !ok {
			return fmt.Errorf("zktest: Version(%q): want one of %q", line, slices.Sorted(maps.Keys(znode.Releases)))
		}
		c.release = release
		return nil
	})
}

// MaxPacket sets the length of the longest request in bytes, ZooKeeper's jute.maxbuffer. The server
// closes the connection of a client that sends a longer one, without an answer. The default is ZooKeeper's,
// 1 MiB less one byte. With [ExtraPacket], it also bounds the end of a session.
func MaxPacket(n int) Option {
	return option(func(c *config) error {
		c.maxPacket = n
		if n < 64 || n > codec.MaxFrame {
			return fmt.Errorf("zktest: MaxPacket(%d): want 64 to %d", n, codec.MaxFrame)
		}
		return nil
	})
}

// ExtraPacket sets ZooKeeper's zookeeper.jute.maxbuffer.extrasize: how many bytes more than [MaxPacket] servers read
// from their logs and from their leader. The default is ZooKeeper's, as many again as MaxPacket, and at least 1024.
//
// The end of a session is written to the log at any length. It has 48 bytes, and the path of each ephemeral node of the
// session with 4 bytes more. If that is more than servers read, the leader's followers leave it. Then it stops serving
// for good, because it cannot read its own log. The next leader ends the session too, until no majority is left. A server
// alone goes on, but does not start again. [Server.Failure] says which servers are past help, and a test with [Start] fails
// at its end.
func ExtraPacket(n int) Option {
	return option(func(c *config) error {
		c.extra = n
		if n < leastExtra || n > codec.MaxFrame {
			return fmt.Errorf("zktest: ExtraPacket(%d): want %d to %d", n, leastExtra, codec.MaxFrame)
		}
		return nil
	})
}

// leastExtra is the least that ZooKeeper takes for its extra size.
const leastExtra = 1024

// OutstandingLimit sets ZooKeeper's globalOutstandingLimit, which bounds the requests that a server has in process. A
// server above the limit reads the next request of a client, and then no more of that client. It reads on when it
// answers a request of the client, if it is no longer above the limit or if the client waits for no other answer.
//
// As in ZooKeeper, each server of an ensemble of n has the limit divided by n-1, and pings do not count. The default is
// ZooKeeper's, 1000. Servers answer most requests at once, so the limit shows only where writes take time. See
// [Server.SetCommitDelay] and [Server.DelayLink].
func OutstandingLimit(n int) Option {
	return option(func(c *config) error {
		c.outstand = n
		if n < 1 {
			return fmt.Errorf("zktest: OutstandingLimit(%d): want at least 1", n)
		}
		return nil
	})
}

var errNilOption = errors.New("zktest: nil option")

// newConfig applies the options and checks the result.
func newConfig(opts []Option) (config, error) {
	c := config{
		commonConfig: commonConfig{
			servers:        1,
			tick:           2 * time.Second,
			containerCheck: time.Minute,
		},
		syncLimit: 5,
		rate:      1,
		election:  200 * time.Millisecond,
		release:   znode.Releases["3.8"],
		maxPacket: 1<<20 - 1,
		outstand:  1000,
	}
	var errs []error
	for _, opt := range opts {
		if opt == nil {
			errs = append(errs, errNilOption)
			continue
		}
		errs = append(errs, opt.apply(&c))
	}
	if c.servers > 63 {
		errs = append(errs, fmt.Errorf("zktest: Servers(%d): want an odd number from 1 to 63", c.servers))
	}
	if err := errors.Join(errs...); err != nil {
		return c, err
	}
	c.extra = cmp.Or(c.extra, max(c.maxPacket, leastExtra))
	return c, c.sessionTimeouts(20 * c.tick)
}

// quorum is the part of the configuration that the state of the servers has.
func (c *config) quorum() quorum.Config {
	return quorum.Config{
		Servers:        c.servers,
		SyncLimit:      c.syncLimit,
		Election:       c.election,
		Phases:         c.phases,
		Tick:           c.tick,
		Rate:           c.rate,
		MinSession:     c.minSession,
		MaxSession:     c.maxSession,
		ContainerCheck: c.containerCheck,
		MaxRead:        c.maxPacket + c.extra,
		Outstanding:    c.outstand,
		Passwords:      c.passwords,
		RequireSASL:    c.needsSASL,
		Release:        c.release,
	}
}
