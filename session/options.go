package session

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/dial"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// Option changes what [Connect] and [Open] do. A bad value makes them fail before any I/O, with [ErrInvalid].
type Option interface{ apply(c *config) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

func setting(ok bool, set func(*config), format string, values ...any) Option {
	return option(func(c *config) error {
		if !ok {
			return misuse.Invalidf(format, values...)
		}
		set(c)
		return nil
	})
}

type config struct {
	named   string
	servers []dial.Server
	chroot  string

	timeout, margin, tick  time.Duration // 0: not set
	patience               time.Duration // for a handshake without a session: timeout, but no less and no more than servers need
	maxNodes, maxNodeBytes int
	lossOnSuspend          bool

	waits   rounds.Backoff // to be copied
	auths   []codec.Identity
	sasl    *wire.SASL
	acl     []zk.ACL
	tls     *tls.Config
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	resolve func(ctx context.Context) ([]string, error)
	log     *slog.Logger
	lines   *logQueue
	traces  []Trace
}

func newConfig(servers string, opts []Option) (*config, error) {
	c := &config{
		named: servers, timeout: 10 * time.Second, maxNodes: 8192, maxNodeBytes: 1 << 20, log: slog.Default(),
		acl: zk.WorldACL(zk.PermAll),
	}
	var err error
	c.servers, c.chroot, err = dial.Parse(servers)
	errs := []error{err}
	for _, o := range opts {
		if o == nil {
			errs = append(errs, misuse.Invalidf("nil option"))
			continue
		}
		errs = append(errs, o.apply(c))
	}
	if err == nil && len(c.servers) == 0 && c.resolve == nil {
		errs = append(errs, misuse.Invalidf("connect string %q names no server", servers))
	}
	if c.margin >= c.timeout {
		errs = append(errs, misuse.Invalidf("margin %v is not below the session timeout %v", c.margin, c.timeout))
	} else if c.tick > 0 { // otherwise the tick is not known yet
		timeout, half := max(c.timeout, 2*c.tick), c.tick/2
		if margin, ok := clock.Margin(c.margin, timeout, half); !ok || c.margin > 0 && margin != c.margin {
			short := &shortLease{timeout, cmp.Or(c.margin, margin), half}
			errs = append(errs, misuse.Invalidf("%v (WithTimeout, WithMargin, WithTickTime)", short))
		}
	}
	if c.waits.First == 0 { // a dead connection should not cause more traffic than heartbeats
		c.waits.First = 50 * time.Millisecond
		c.waits.Most = max(c.waits.First, min(15*time.Second, c.timeout/2))
	}
	c.patience = min(max(c.timeout, time.Second), time.Minute)
	c.lines = new(logQueue)
	handler := c.log.Handler()
	c.log = slog.New(queueHandler{func() slog.Handler { return handler }, c.lines})
	return c, errors.Join(errs...)
}

func (c *config) outward(path string) string {
	if path == "/" && c.chroot != "" {
		return c.chroot
	}
	return c.chroot + path
}

func (c *config) inward(path string) string {
	if rest := strings.TrimPrefix(path, c.chroot); rest != "" {
		return rest
	}
	return "/"
}

// WithTimeout asks the servers for a session timeout. They may grant another: see [Session.Timeout]. A holder that is
// cut off learns that it has lost its locks before the timeout has passed, and other clients get them soon after.
// With the default margin it has to be longer than 0.57 s. Default: 10 s.
func WithTimeout(d time.Duration) Option {
	const most = math.MaxInt32 * time.Millisecond
	return setting(d >= time.Millisecond && d <= most, func(c *config) { c.timeout = d },
		"session timeout %v is not between 1 ms and %v", d, most)
}

// WithTickTime sets how long a tick of the servers is: tickTime in their configuration. A leader hears of the clients
// of other servers only twice a tick, so every lease is shorter by half a tick. With a tick that is too short, a
// session can report itself live after the servers have expired it. Default: the manager learns the tick by a short
// session of its own, and until then assumes half the session timeout.
func WithTickTime(d time.Duration) Option {
	return setting(d >= time.Millisecond && d <= time.Hour, func(c *config) { c.tick = d },
		"tick %v is not between 1 ms and 1 h", d)
}

// WithMargin sets how early a session counts as lost, before the servers could expire it. The margin covers clocks
// that run at different rates, and threads that run late. Default: a tenth of the granted timeout.
//
// It has to leave room for heartbeats: 0.6 of the timeout and 100 ms, or more with ticks longer than half the
// timeout. If it does not by WithTickTime, Connect fails with [ErrInvalid]. Otherwise it is made shorter, and logged,
// and Connect fails if what is left for it is less than both d and a tenth of the timeout.
func WithMargin(d time.Duration) Option {
	return setting(d > 0, func(c *config) { c.margin = d }, "margin %v is not positive", d)
}

// WithAuth presents an identity to the servers on every connection, such as ("digest", []byte("user:password")). It
// may be given more than once. Without [WithTLS] the credential crosses the network in the clear. Default: none.
//
// With a wrong password, requests fail with [zk.ErrNoAuth]. If a server refuses the identity itself, Connect fails
// with [zk.ErrAuthFailed], and an existing session is lost.
func WithAuth(scheme string, credential []byte) Option {
	return option(func(c *config) error {
		switch {
		case scheme == "":
			return misuse.Invalidf("empty auth scheme")
		case scheme == "digest" && !bytes.Contains(credential, []byte(":")):
			return misuse.Invalidf("the credential of the scheme digest is user:password, and this one has no colon")
		}
		c.auths = append(c.auths, codec.Identity{Scheme: scheme, Credential: bytes.Clone(credential)})
		return nil
	})
}

// WithACL sets the access control list of every node that the library creates, parents included. A client that may
// delete in a lock's directory can break its locks. Default: everybody may do everything.
func WithACL(acl ...zk.ACL) Option {
	const needed = int32(zk.PermCreate | zk.PermDelete)
	return option(func(c *config) error {
		var all int32
		for _, one := range acl {
			all |= one.Perms
		}
		switch {
		case len(acl) == 0:
			return misuse.Invalidf("empty ACL")
		case all&needed != needed:
			return misuse.Invalidf("an ACL with which nobody could both create and delete nodes: locks need these rights")
		}
		c.acl = slices.Clone(acl)
		return nil
	})
}

// WithTLS connects to the servers with TLS. If cfg has no ServerName, the host of the connect string is verified. A
// server that fails verification, or refuses our certificate, counts as down. cfg is copied. To renew certificates,
// set functions in it, such as GetClientCertificate. Default: plain TCP.
func WithTLS(cfg *tls.Config) Option {
	return setting(cfg != nil, func(c *config) { c.tls = cfg.Clone() }, "nil TLS config")
}

// WithResolver has the manager ask which servers there are, for example in DNS (SRV records) or in a file. Each is a
// host with or without a port. The connect string may then be empty, or have only a chroot, such as "/app".
//
// The manager asks when it begins to dial, and again after it has tried all servers or 10 s. A call's context ends
// after 10 s. If the resolver fails or takes more than half a second, the last known servers are dialled. Default:
// the servers of the connect string.
func WithResolver(resolve func(ctx context.Context) ([]string, error)) Option {
	return setting(resolve != nil, func(c *config) { c.resolve = resolve }, "nil resolver")
}

// WithDialer replaces the TCP dialer. dial gets a host and port of the connect string, must return when ctx ends, and
// must be safe for concurrent use. The connections need not support deadlines. Default: [net.Dialer], with names
// resolved again in each round through the servers.
func WithDialer(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	return setting(dial != nil, func(c *config) { c.dial = dial }, "nil dialer")
}

// WithLogger sets the logger. Sessions that open, reconnect or close are logged at level info, outages and losses at
// level warn, refused removals at level error, and dials at level debug. A logger that hangs delays nothing: lines
// are dropped when 1000 wait. No line has a credential. Default: [slog.Default] at the time of Connect or Open.
func WithLogger(log *slog.Logger) Option {
	return setting(log != nil && log.Handler() != nil, func(c *config) { c.log = log },
		"nil logger, or one without a handler")
}

// WithTrace adds hooks. Those of several options are called in order, each with the context that the one before it
// returned, and the functions that they return in the opposite order. Default: none.
func WithTrace(t Trace) Option {
	return option(func(c *config) error {
		c.traces = append(c.traces, t)
		return nil
	})
}

// WithLossOnSuspend makes every disconnection a loss of the session, like Curator's StandardErrorPolicy, for programs
// that must stop work at once. Default: a session survives as long as its clock is certain.
func WithLossOnSuspend() Option {
	return option(func(c *config) error {
		c.lossOnSuspend = true
		return nil
	})
}

// WithBackoff sets the waits before a request is tried again, and before dials. Each is drawn from zero to a bound,
// which doubles from first to most. While there is a session to lose, waits between dials are below a second and
// below an eighth of its remaining time. Default: from 50 ms to half the session timeout, but at most 15 s.
func WithBackoff(first, most time.Duration) Option {
	return setting(first > 0 && most >= first, func(c *config) { c.waits.First, c.waits.Most = first, most },
		"backoff from %v to %v", first, most)
}

// WithNodeLimits bounds the number of ephemeral nodes that one session owns, and the bytes of their paths, with the
// chroot and four bytes for each. A create beyond a bound fails with [ErrTooManyNodes]. Default: 8192 nodes and 1
// MiB.
//
// When a session ends, a server deletes its nodes in one transaction, which lists these paths. Longer ones than
// servers read have brought ensembles down: bytes must be at most the smallest jute.maxbuffer of any server.
func WithNodeLimits(nodes, bytes int) Option {
	return setting(nodes > 0 && bytes > 0, func(c *config) { c.maxNodes, c.maxNodeBytes = nodes, bytes },
		"limits of %d nodes and %d bytes: both must be positive", nodes, bytes)
}
