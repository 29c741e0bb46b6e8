package core

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/callout"
	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/dial"
	"github.com/turnstile-go/turnstile/internal/logbook"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Defaults of the options.
const (
	defaultTimeout      = 10 * time.Second
	defaultMaxNodes     = 8192
	defaultMaxNodeBytes = 1 << 20

	// defaultRetryFirst is the first bound of full jitter: a wait is drawn from zero to a bound. The bound
	// doubles from 50 ms to half the session timeout, or to 15 s if that is less. So a client without a connection
	// dials less often than it would send heartbeats. While a session is at stake, waits between dials are shorter:
	// see pace. ExponentialBackOff draws from 0 to twice its interval.
	defaultRetryFirst = 50 * time.Millisecond
	defaultRetryMax   = 15 * time.Second

	// defaultConnectMax bounds a dial. A slow one does not delay the others, which begin beside it.
	defaultConnectMax = 15 * time.Second
)

// Config is the result of all options. Only its hooks change later, and in tests the window.
type Config struct {
	servers  []dial.Server
	chroot   string
	noServer error // if the connect string names none

	Timeout        time.Duration
	Margin         time.Duration // 0: a tenth of the negotiated timeout
	ConnectTimeout time.Duration
	Tick           time.Duration // 0: not told
	MaxNodes       int
	MaxNodeBytes   int
	window         atomic.Int32 // 0, or what SetWindow has set
	LossOnSuspend  bool
	Name           string // of the ensemble; "": its servers

	Retry func() backoff.BackOff
	Auths []codec.Identity
	SASL  *SASL    // nil: none
	acl   []zk.ACL // of new nodes; nobody changes it
	TLS   *tls.Config
	Dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	// Resolve says which servers there are. nil: those of the connect string.
	Resolve func(ctx context.Context) ([]string, error)
	Log     *slog.Logger
	lines   *logbook.Queue // of log
	trace   callout.Hooks
	states  []func(hooks.Change) // the State hooks

	lookup func(ctx context.Context, host string) ([]string, error) // nil: that of package net; for tests
}

// NewConfig returns the defaults for the servers of a connect string. If that is bad, the caller goes on only to collect
// further errors.
func NewConfig(servers string) (*Config, error) {
	c := &Config{Timeout: defaultTimeout, MaxNodes: defaultMaxNodes, MaxNodeBytes: defaultMaxNodeBytes, Log: slog.Default()}
	c.SetACL(zk.WorldACL(zk.PermAll))
	var err error
	c.servers, c.chroot, err = dial.Parse(servers)
	if err == nil && len(c.servers) == 0 {
		c.noServer = misuse.Invalidf("connect string %q names no server", servers)
	}
	return c, err
}

// Finish checks what the options have set, and completes it.
func (c *Config) Finish() error {
	var errs []error
	if c.Resolve == nil {
		errs = append(errs, c.noServer)
	}
	if c.Margin >= c.Timeout {
		errs = append(errs, misuse.Invalidf("margin %v is not below the session timeout %v", c.Margin, c.Timeout))
	}
	errs = append(errs, c.checkLease())
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = min(c.Timeout, defaultConnectMax)
	}
	c.Log, c.lines = logbook.Queued(c.Log)
	c.trace.Log(c.Log)
	defaults := func() backoff.BackOff { return defaultRetry(c.Timeout) }
	if users := c.Retry; users != nil {
		c.Retry = c.trace.Retry(users, defaults)
	} else {
		c.Retry = defaults
	}
	return errors.Join(errs...)
}

// AddTrace adds hooks before the manager starts.
func (c *Config) AddTrace(t hooks.Trace) {
	if state := c.trace.Add(t); state != nil {
		c.states = append(c.states, state)
	}
}

// checkLease fails if the options alone tell that every session which owns a node would be lost. Without
// the tick they do not tell, because the servers grant no less than two ticks. So a session is checked
// again when it is granted: see Session.grant.
func (c *Config) checkLease() error {
	if c.Tick == 0 || c.Margin >= c.Timeout {
		return nil
	}
	timeout, half := max(c.Timeout, 2*c.Tick), c.Tick/2
	margin, ok := clock.Margin(c.Margin, timeout, half)
	if ok && (c.Margin == 0 || margin == c.Margin) {
		return nil
	}
	if c.Margin > 0 {
		margin = c.Margin
	}
	return misuse.Invalidf("%v (WithTimeout, WithMargin, WithTickTime)", &shortLease{timeout, margin, half})
}

func defaultRetry(timeout time.Duration) backoff.BackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval:     defaultRetryFirst / 2,
		MaxInterval:         min(defaultRetryMax, timeout/2) / 2,
		Multiplier:          2,
		RandomizationFactor: 1,
	}
}

// NodeACL returns the list of new nodes. Nobody may change it.
func (c *Config) NodeACL() []zk.ACL { return c.acl }

// SetACL sets the list of new nodes.
func (c *Config) SetACL(acl []zk.ACL) { c.acl = slices.Clone(acl) }

func (c *Config) outward(path string) string {
	if path == "/" && c.chroot != "" {
		return c.chroot
	}
	return c.chroot + path
}
