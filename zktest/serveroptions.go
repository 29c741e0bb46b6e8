package zktest

import (
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
	quorum.Config
	maxPacket int
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
		c.Release = release
		return nil
	})
}

// MaxPacket sets the length of the longest request in bytes, ZooKeeper's jute.maxbuffer. The server closes the
// connection of a client that sends a longer one, without an answer. The default is ZooKeeper's, 1 MiB less one byte.
//
// The end of a session is written to the log at any length. It has 48 bytes, and the path of each ephemeral node of the
// session with 4 bytes more. If that is more than twice the longest request, the leader's followers leave it. Then it
// stops serving for good, because it cannot read its own log. The next leader ends the session too, until no majority
// is left. A server alone goes on, but does not start again. A test with [Start] fails at its end.
func MaxPacket(n int) Option {
	return option(func(c *config) error {
		c.maxPacket = n
		if n < 64 || n > codec.MaxFrame {
			return fmt.Errorf("zktest: MaxPacket(%d): want 64 to %d", n, codec.MaxFrame)
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
		Config: quorum.Config{
			SyncLimit: 5, // ticks, as is ZooKeeper's default
			Election:  200 * time.Millisecond,
			Rate:      1,
			Release:   znode.Releases["3.8"],
		},
		maxPacket: 1<<20 - 1,
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
	return c, c.sessionTimeouts(20 * c.tick)
}

// complete is the configuration of the servers.
func (c *config) complete() quorum.Config {
	q := c.Config
	q.Servers, q.Tick, q.ContainerCheck, q.MinSession, q.MaxSession = c.servers, c.tick, c.containerCheck, c.minSession, c.maxSession
	q.MaxRead = c.maxPacket + max(c.maxPacket, 1024) // as ZooKeeper's default for its extra size
	return q
}
