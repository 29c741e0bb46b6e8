package zktest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/zktest/internal/javaserver"
)

// A RealOption changes how [StartReal] and [NewReal] set their servers up.
type RealOption func(*realConfig)

type realConfig struct {
	javaserver.Config
	nodes      int
	partitions bool
}

// Nodes sets the number of servers, which must be odd. The default is 1: a
// standalone server. More form an ensemble.
func Nodes(n int) RealOption {
	return func(c *realConfig) { c.nodes = n }
}

// TickTime sets ZooKeeper's unit of time, from which most of its timeouts
// follow; sessions expire on multiples of it. The default is 500ms.
func TickTime(d time.Duration) RealOption {
	return func(c *realConfig) { c.Tick = d }
}

// ContainerCheck sets how often the server looks for empty container nodes and
// expired TTL nodes to delete. The default is one minute, as ZooKeeper's.
func ContainerCheck(d time.Duration) RealOption {
	return func(c *realConfig) { c.ContainerCheck = d }
}

// MinSessionTimeout sets the shortest session timeout a client can negotiate.
// The default is two ticks.
func MinSessionTimeout(d time.Duration) RealOption {
	return func(c *realConfig) { c.MinSession = d }
}

// MaxSessionTimeout sets the longest session timeout a client can negotiate.
// The default is 60s.
func MaxSessionTimeout(d time.Duration) RealOption {
	return func(c *realConfig) { c.MaxSession = d }
}

// Property adds a line to the configuration file of each server, such as "snapCount" or
// "ssl.clientAuth"; what zktest needs itself, such as the ports, is not to be touched. Of
// several with one key the last counts.
func Property(key, value string) RealOption {
	return func(c *realConfig) { c.Properties = append(c.Properties, [2]string{key, value}) }
}

// SecurePort gives each server a second port, [Ensemble.SecureAddr], on which clients speak
// TLS. The server's keys are set with [Property]: "ssl.keyStore.location", a file of
// certificate and key whose name ends in .pem, for example, and "ssl.trustStore.location",
// or "ssl.clientAuth" as "none". Clients of either port are then served by Netty.
func SecurePort() RealOption {
	return func(c *realConfig) { c.Secure = true }
}

// newRealConfig applies the options and checks what comes out.
func newRealConfig(opts []RealOption) (realConfig, error) {
	c := realConfig{
		Config: javaserver.Config{
			Tick:           500 * time.Millisecond,
			ContainerCheck: time.Minute,
			MaxSession:     time.Minute,
		},
		nodes: 1,
	}
	for _, opt := range opts {
		if opt == nil {
			return c, errors.New("zktest: nil option")
		}
		opt(&c)
	}
	if c.nodes < 1 || c.nodes%2 == 0 {
		return c, fmt.Errorf("zktest: Nodes(%d): want an odd number of servers", c.nodes)
	}
	if err := wholeMillis("TickTime", c.Tick); err != nil {
		return c, err
	}
	if c.MinSession == 0 {
		c.MinSession = 2 * c.Tick
	}
	if err := errors.Join(
		wholeMillis("ContainerCheck", c.ContainerCheck),
		wholeMillis("MinSessionTimeout", c.MinSession),
		wholeMillis("MaxSessionTimeout", c.MaxSession),
	); err != nil {
		return c, err
	}
	if c.MinSession > c.MaxSession {
		return c, fmt.Errorf("zktest: shortest session timeout %v is more than the longest, %v", c.MinSession, c.MaxSession)
	}
	for _, p := range c.Properties {
		if err := checkProperty(p[0], p[1]); err != nil {
			return c, err
		}
	}
	return c, nil
}

// checkProperty refuses what would be something else in a file of Java properties.
func checkProperty(key, value string) error {
	if key == "" || strings.ContainsAny(key, " \t\r\n\f=:#!\\") || strings.ContainsAny(value, "\r\n") {
		return fmt.Errorf("zktest: Property(%q, %q): not one line of a configuration", key, value)
	}
	return nil
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
