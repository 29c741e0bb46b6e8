package quorum

import (
	"time"

	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// Config says how servers behave.
type Config struct {
	Servers        int
	SyncLimit      int             // ticks
	Election       time.Duration   // how long servers need to elect or join a leader
	Phases         []time.Duration // of the servers' session trackers, the first ones
	Tick           time.Duration
	Rate           float64 // of the servers' clocks, by that of this process
	MinSession     time.Duration
	MaxSession     time.Duration
	ContainerCheck time.Duration
	Release        znode.Release
	MaxRead        int               // bytes of a transaction that servers read back from a log, or from their leader
	Passwords      map[string]string // of the users of SASL; nil: there is no SASL
	RequireSASL    bool              // of clients, before all other requests
}

// real returns how long something takes that takes d by the servers' clocks.
func (c *Config) real(d time.Duration) time.Duration {
	if c.Rate == 1 {
		return d
	}
	return time.Duration(float64(d) / c.Rate)
}

// phase returns the phase of a server's session tracker.
func (c *Config) phase(server int) time.Duration {
	if server < len(c.Phases) {
		return c.Phases[server] % c.Tick
	}
	return (c.Tick * time.Duration(server) / time.Duration(c.Servers)).Truncate(time.Millisecond)
}
