package zktest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/zktest/internal/javaserver"
)

// A RealOption configures the servers that [StartReal] or [NewReal] starts.
type RealOption func(*realConfig)

type realConfig struct {
	javaserver.Config
	nodes      int
	partitions bool
}

// Nodes sets the number of servers, which must be odd. The default is 1, a standalone server. Several
// servers form an ensemble.
func Nodes(n int) RealOption {
	return func(c *realConfig) { c.nodes = n }
}

// TickTime sets the tick, ZooKeeper's unit of time. Most of its timeouts are multiples of a tick, and
// sessions expire on ticks. The default is 500ms.
func TickTime(d time.Duration) RealOption {
	return func(c *realConfig) { c.Tick = d }
}

// ContainerCheck sets how often the server deletes empty container nodes and expired TTL nodes. The
// default is ZooKeeper's, one minute.
func ContainerCheck(d time.Duration) RealOption {
	return func(c *realConfig) { c.ContainerCheck = d }
}

// MinSessionTimeout sets the shortest session timeout that a client can negotiate. The default is two
// ticks.
func MinSessionTimeout(d time.Duration) RealOption {
	return func(c *realConfig) { c.MinSession = d }
}

// MaxSessionTimeout sets the longest session timeout that a client can negotiate. The default is
// 60s.
func MaxSessionTimeout(d time.Duration) RealOption {
	return func(c *realConfig) { c.MaxSession = d }
}

// Property adds a line to the configuration file of each server, such as "snapCount" or
// "ssl.clientAuth". Do not set properties that zktest sets itself, such as the ports. If a key is set
// more than once, the last value counts.
func Property(key, value string) RealOption {
	return func(c *realConfig) { c.Properties = append(c.Properties, [2]string{key, value}) }
}

// SecurePort gives each server a second port, [Ensemble.SecureAddr], for clients that speak TLS. Set
// the server's keys with [Property]: "ssl.keyStore.location" to a file, for example one whose name ends
// in .pem with the certificate and the key, and "ssl.trustStore.location", or "ssl.clientAuth" to
// "none". With this option, Netty serves the clients of both ports.
func SecurePort() RealOption {
	return func(c *realConfig) { c.Secure = true }
}

// newRealConfig applies the options and checks the result.
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

// checkProperty refuses keys and values that would not be one line in a file of Java properties.
func checkProperty(key, value string) error {
	if key == "" || strings.ContainsAny(key, " \t\r\n\f=:#!\\") || strings.ContainsAny(value, "\r\n") {
		return fmt.Errorf("zktest: Property(%q, %q): not one line of a configuration", key, value)
	}
	return nil
}

// wholeMillis checks a duration that ZooKeeper reads as a number of milliseconds in a Java int.
func wholeMillis(name string, d time.Duration) error {
	const most = (1<<31 - 1) * time.Millisecond
	if d < time.Millisecond || d > most || d%time.Millisecond != 0 {
		return fmt.Errorf("zktest: %s(%v): want whole milliseconds, from 1ms to %v", name, d, most)
	}
	return nil
}
