package zktest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/internal/switches"
	"github.com/turnstile-go/turnstile/zktest/internal/javaserver"
)

// A RealOption configures the servers that [StartReal] or [NewReal] starts. Every [CommonOption] is one too. StartReal
// and NewReal fail, before they start anything, if an option is nil or has a bad value.
type RealOption interface{ applyReal(*realConfig) error }

type realOption func(*realConfig) error

func (o realOption) applyReal(c *realConfig) error { return o(c) }

type realConfig struct {
	commonConfig
	javaserver.Config
	between func([]switches.Ports) ([][]switches.Ports, error) // nil: servers speak to each other directly
}

// Property adds a line to the configuration file of each server, such as "snapCount" or "ssl.clientAuth". Do not set
// properties that zktest sets itself, such as the ports. If a key is set more than once, the last value counts.
func Property(key, value string) RealOption {
	return realOption(func(c *realConfig) error {
		c.Properties = append(c.Properties, [2]string{key, value})
		return checkProperty(key, value)
	})
}

// Environ sets an environment variable for the process of each server, such as "JAVA_TOOL_OPTIONS". The servers also
// have the environment of this process. If a variable is set more than once, the last value counts.
func Environ(key, value string) RealOption {
	return realOption(func(c *realConfig) error {
		c.Environ = append(c.Environ, key+"="+value)
		if key == "" || strings.ContainsAny(key, "=\x00") || strings.Contains(value, "\x00") {
			return fmt.Errorf("zktest: Environ(%q, %q): not an environment variable", key, value)
		}
		return nil
	})
}

// SecurePort gives each server a second port, [Ensemble.SecureAddr], for clients that speak TLS. Set
// the server's keys with [Property]: "ssl.keyStore.location" to a file, for example one whose name ends
// in .pem with the certificate and the key, and "ssl.trustStore.location", or "ssl.clientAuth" to
// "none". With this option, Netty serves the clients of both ports.
func SecurePort() RealOption {
	return realOption(func(c *realConfig) error { c.Secure = true; return nil })
}

// Observers adds n servers that have no vote. They are the last servers of the ensemble: with Servers(3)
// and Observers(1), server 3 is the observer. It is an error with fewer than three other servers.
func Observers(n int) RealOption {
	return realOption(func(c *realConfig) error {
		c.Observers = n
		if n < 0 {
			return fmt.Errorf("zktest: Observers(%d): negative", n)
		}
		return nil
	})
}

// newRealConfig applies the options and checks the result.
func newRealConfig(opts []RealOption) (realConfig, error) {
	c := realConfig{commonConfig: commonConfig{
		servers:        1,
		tick:           500 * time.Millisecond,
		containerCheck: time.Minute,
	}}
	var errs []error
	for _, opt := range opts {
		if opt == nil {
			errs = append(errs, errNilOption)
			continue
		}
		errs = append(errs, opt.applyReal(&c))
	}
	if err := errors.Join(errs...); err != nil {
		return c, err
	}
	if c.Observers > 0 && c.servers < 3 {
		return c, fmt.Errorf("zktest: Observers(%d) of %d servers: want three servers or more", c.Observers, c.servers)
	}
	err := c.sessionTimeouts(time.Minute)
	c.Tick, c.ContainerCheck, c.MinSession, c.MaxSession = c.tick, c.containerCheck, c.minSession, c.maxSession
	return c, err
}

// checkProperty refuses keys and values that would not be one line in a file of Java properties.
func checkProperty(key, value string) error {
	if key == "" || strings.ContainsAny(key, " \t\r\n\f=:#!\\") || strings.ContainsAny(value, "\r\n") {
		return fmt.Errorf("zktest: Property(%q, %q): not one line of a configuration", key, value)
	}
	return nil
}
