package quorum

import "time"

// Config says how servers behave.
type Config struct {
	Servers        int
	SyncLimit      int             // ticks
	Election       time.Duration   // how long servers need to elect or join a leader
	Phases         []time.Duration // of the servers' session trackers, the first ones
	Tick           time.Duration
	MinSession     time.Duration
	MaxSession     time.Duration
	ContainerCheck time.Duration
	Containers     bool // false: the server refuses containers with ZooKeeper's code UNIMPLEMENTED
}

// phase returns the phase of a server's session tracker.
func (c *Config) phase(server int) time.Duration {
	if server < len(c.Phases) {
		return c.Phases[server] % c.Tick
	}
	return (c.Tick * time.Duration(server) / time.Duration(c.Servers)).Truncate(time.Millisecond)
}
