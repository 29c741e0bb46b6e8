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

// Option changes what [Connect] and [Open] do. A bad value makes them fail before any I/O, with an error that matches
// [ErrInvalid].
type Option interface{ apply(c *config) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

// setting returns an option that sets something, or fails with a text if the value is not ok.
func setting(ok bool, set func(*config), format string, values ...any) Option {
	return option(func(c *config) error {
		if !ok {
			return misuse.Invalidf(format, values...)
		}
		set(c)
		return nil
	})
}

// config is the result of all options.
type config struct {
	named   string // the connect string
	servers []dial.Server
	chroot  string // "" if there is none

	timeout, margin, tick  time.Duration // a margin or a tick of 0 is not told
	maxNodes, maxNodeBytes int
	lossOnSuspend          bool

	waits   rounds.Backoff // to be copied
	auths   []codec.Identity
	sasl    *wire.SASL // nil: none
	acl     []zk.ACL
	tls     *tls.Config
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	resolve func(ctx context.Context) ([]string, error)
	log     *slog.Logger
	lines   *logQueue // of log
	traces  []Trace
}

// newConfig returns the result of all options. Its error names everything that is wrong.
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
	} else if c.tick > 0 { // without it, only the timeout that is granted tells whether there is room for heartbeats
		timeout, half := max(c.timeout, 2*c.tick), c.tick/2
		if margin, ok := clock.Margin(c.margin, timeout, half); !ok || c.margin > 0 && margin != c.margin {
			short := &shortLease{timeout, cmp.Or(c.margin, margin), half}
			errs = append(errs, misuse.Invalidf("%v (WithTimeout, WithMargin, WithTickTime)", short))
		}
	}
	if c.waits.First == 0 { // a client without a connection dials less often than it would send heartbeats
		c.waits.First, c.waits.Most = 50*time.Millisecond, min(15*time.Second, c.timeout/2)
	}
	c.lines = new(logQueue)
	c.log = slog.New(queueHandler{c.log.Handler(), c.lines})
	return c, errors.Join(errs...)
}

// outward adds the chroot to a path, and inward removes it.
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
// cut off learns that it has lost its locks before the timeout has passed, and other clients get them soon after. The
// timeout has to leave room for heartbeats (see [WithMargin]): with the default margin it has to be longer than 0.57 s.
// Default: 10 s.
func WithTimeout(d time.Duration) Option {
	const most = math.MaxInt32 * time.Millisecond
	return setting(d >= time.Millisecond && d <= most, func(c *config) { c.timeout = d },
		"session timeout %v is not between 1 ms and %v", d, most)
}

// WithTickTime sets how long a tick of the servers is: tickTime in their configuration. A leader hears of the clients
// of other servers only twice a tick, so every lease is shorter by half a tick. With a tick that is too short, a
// session can report itself live after the servers have expired it.
//
// Default: the manager learns the tick from the shortest session timeout that the servers grant, for which it opens a
// short session of its own. Until then it takes a quarter of the session timeout for half a tick.
func WithTickTime(d time.Duration) Option {
	return setting(d >= time.Millisecond && d <= time.Hour, func(c *config) { c.tick = d },
		"tick %v is not between 1 ms and 1 h", d)
}

// WithMargin sets how early a session counts as lost, before the servers could expire it. The margin covers clocks that
// run at different rates, and threads that run late.
//
// What the margin leaves of the timeout has to be enough for the heartbeats of a session that owns nodes: 0.6 of the
// timeout and 100 ms, or more if a tick is longer than half the timeout. If the tick is told and it is not enough,
// Connect fails. If that comes to light when the servers grant a timeout, the session has a shorter margin, which the
// log warns of, or if not even a tenth of the timeout is left, there is no session. The error matches [ErrInvalid].
// Default: a tenth of the granted timeout.
func WithMargin(d time.Duration) Option {
	return setting(d > 0, func(c *config) { c.margin = d }, "margin %v is not positive", d)
}

// WithAuth presents an identity to the servers on every connection, such as ("digest", []byte("user:password")). It may
// be given more than once. Without [WithTLS] the credential crosses the network in the clear.
//
// A server does not know which passwords are right: with a wrong one, requests fail with [zk.ErrNoAuth]. If the server
// refuses the identity itself, for example because it does not have the scheme, Connect fails with [zk.ErrAuthFailed],
// and a session that exists already is lost. Default: none.
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

// WithACL sets the access control list of every node that the library creates, parents included, and not that of a
// directory which exists already. A client that may delete in a lock's directory can break its locks. One that may not
// read it cannot list its contenders, but servers before 3.8.4 and 3.9.2 tell it how many there are (ZOOKEEPER-2590).
// Default: everybody may do everything.
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
// server that fails verification, or refuses our certificate, is tried again like one that does not answer.
//
// The config is copied. Certificates that are renewed while the program runs come from functions of it, which each
// handshake calls: GetClientCertificate, and VerifyConnection with InsecureSkipVerify where the authorities of the
// servers change. A connection goes on past the end of the certificates that it began with. Default: plain TCP.
func WithTLS(cfg *tls.Config) Option {
	return setting(cfg != nil, func(c *config) { c.tls = cfg.Clone() }, "nil TLS config")
}

// WithResolver has the manager ask which servers there are, for example in DNS (SRV records) or in a file. Each is a
// host with or without a port. With [WithTLS] the host is verified, so names are better than addresses. Those that
// cannot be servers are left out, and the log names them. The connect string may be empty then, or have only a chroot,
// such as "/app". Servers that it has are used until the resolver has answered.
//
// The manager asks when it dials: for the first connection, after each disconnection, and whenever it has tried all
// servers or has dialled for 10 s. It makes one call at a time, whose context ends after 10 s. If the resolver fails,
// names no server, or has not answered after half a second, the last servers that it named are dialled. If there are
// none, the manager asks again after a wait of [WithBackoff]. Default: the servers of the connect string.
func WithResolver(resolve func(ctx context.Context) ([]string, error)) Option {
	return setting(resolve != nil, func(c *config) { c.resolve = resolve }, "nil resolver")
}

// WithDialer replaces the TCP dialer. dial gets a host and port of the connect string, unresolved, and must return when
// ctx ends. Several calls can run at once. The connections need not support deadlines. Default: each address is dialled
// by [net.Dialer], and names are resolved again in each round through the servers and after each disconnection.
func WithDialer(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	return setting(dial != nil, func(c *config) { c.dial = dial }, "nil dialer")
}

// WithLogger sets the logger. Its lines are:
//
//   - Information: a session is opened, reconnected or closed, and which server it is connected to.
//   - Warning: a session is suspended or lost, with the cause. There has been no connection for 2 s, with the last
//     failure of each server: further lines follow after waits that double from 4 s to 10 minutes. The servers refuse
//     an identity, or grant another timeout than the one asked for, or one with which the margin is shorter.
//   - Error: a server refuses to remove a node. A hook of a lost lock blocks.
//   - Debug: each dial that fails, and why each connection has ended.
//
// If a connection breaks more than 10 times in 10 minutes, further lines about that have level debug. A logger that is
// slow or hangs delays nothing: a goroutine hands the lines on to it, and drops lines when 1000 wait. The key session
// is a session id as the servers log it, server is a name and an address, err and cause are reasons. No line has a
// credential. Default: [slog.Default] at the time of Connect or Open.
func WithLogger(log *slog.Logger) Option {
	return setting(log != nil && log.Handler() != nil, func(c *config) { c.log = log },
		"nil logger, or one without a handler")
}

// WithTrace adds hooks to call. If it is given more than once, the hooks are called in the order of the options, each
// with the context that the one before it returned, and the functions that they return in the opposite order. Of
// several Traceparent hooks, the first one that returns a word decides. Default: none.
func WithTrace(t Trace) Option {
	return option(func(c *config) error {
		c.traces = append(c.traces, t)
		return nil
	})
}

// WithLossOnSuspend makes every disconnection a loss of the session, like Curator's StandardErrorPolicy, for programs
// that must stop work as soon as they are cut off. Default: a session survives a disconnection for as long as its clock
// is certain.
func WithLossOnSuspend() Option {
	return option(func(c *config) error {
		c.lossOnSuspend = true
		return nil
	})
}

// WithBackoff sets the waits before a request is tried again, and before each dial. Each wait is drawn from zero to a
// bound, which doubles from first to most. The first dial after a disconnection goes to another server at once. While
// there is a session to lose, waits between dials are below a second and below an eighth of the session's remaining
// time. Requests give up when their context or the session ends, and never before. Default: from 50 ms to half the
// session timeout, but at most 15 s.
func WithBackoff(first, most time.Duration) Option {
	return setting(first > 0 && most >= first, func(c *config) { c.waits.First, c.waits.Most = first, most },
		"backoff from %v to %v", first, most)
}

// WithNodeLimits bounds the number of ephemeral nodes that one session owns, and the bytes of their paths, with the
// chroot and four bytes for each. A create beyond a bound fails with [ErrTooManyNodes].
//
// When a session ends, a server deletes its nodes in one transaction, which lists these paths. One that is too large
// has brought ensembles down: servers write it at any length, but read no more than jute.maxbuffer plus
// zookeeper.jute.maxbuffer.extrasize, 2 MB by default, from their leader and from their own log. So bytes must be at
// most the smallest jute.maxbuffer of any server. Default: 8192 nodes and 1 MiB, which is 8,192 paths of 124 bytes.
func WithNodeLimits(nodes, bytes int) Option {
	return setting(nodes > 0 && bytes > 0, func(c *config) { c.maxNodes, c.maxNodeBytes = nodes, bytes },
		"limits of %d nodes and %d bytes: both must be positive", nodes, bytes)
}
