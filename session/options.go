package session

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math"
	"net"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// Defaults of the options.
const (
	defaultTimeout  = 10 * time.Second
	defaultMaxNodes = 8192

	// Full jitter: a wait is drawn from zero to a bound that doubles from 50 ms to
	// half the session timeout, or 15 s if that is less: at twice a timeout, dials are
	// fewer than heartbeats are. While a session is at stake, waits between dials are
	// shorter than that: see pace. ExponentialBackOff draws from 0 to twice its interval.
	defaultRetryFirst = 50 * time.Millisecond
	defaultRetryMax   = 15 * time.Second

	// A dial that takes long holds up nobody, since others begin beside it.
	defaultConnectMax = 15 * time.Second
)

// Option changes what [Connect] does. Bad values make Connect fail before any
// I/O, with an error that matches [ErrInvalid].
type Option interface{ apply(*config) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

// config is the sum of the options; it does not change after Connect.
type config struct {
	servers []hostPort
	chroot  string

	timeout        time.Duration
	margin         time.Duration // 0: a tenth of the negotiated timeout
	connectTimeout time.Duration
	tick           time.Duration // 0: not told
	maxNodes       int
	lossOnSuspend  bool
	name           string // of the ensemble; "": that of its servers

	retry func() backoff.BackOff
	auths []wire.Identity
	acl   []zk.ACL
	tls   *tls.Config
	dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	log   *slog.Logger
	trace Trace

	lookup func(ctx context.Context, host string) ([]string, error) // nil: package net's; for tests
}

func newConfig(servers string, opts []Option) (*config, error) {
	c := &config{
		timeout:  defaultTimeout,
		maxNodes: defaultMaxNodes,
		acl:      zk.WorldACL(zk.PermAll),
		log:      slog.Default(),
	}
	var errs []error
	var err error
	if c.servers, c.chroot, err = parseConnectString(servers); err != nil {
		errs = append(errs, err)
	}
	for _, o := range opts {
		if o == nil {
			errs = append(errs, invalidf("nil option"))
			continue
		}
		errs = append(errs, o.apply(c))
	}
	if c.margin >= c.timeout {
		errs = append(errs, invalidf("margin %v is not below the session timeout %v", c.margin, c.timeout))
	}
	if c.connectTimeout == 0 {
		c.connectTimeout = min(c.timeout, defaultConnectMax)
	}
	c.retry = retryOr(c.retry, func() backoff.BackOff { return defaultRetry(c.timeout) })
	return c, errors.Join(errs...)
}

// retryOr returns a function that never returns nil, whatever a user's does.
func retryOr(users, defaults func() backoff.BackOff) func() backoff.BackOff {
	if users == nil {
		return defaults
	}
	return func() backoff.BackOff {
		if b := users(); b != nil {
			return b
		}
		return defaults()
	}
}

func defaultRetry(timeout time.Duration) backoff.BackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval:     defaultRetryFirst / 2,
		MaxInterval:         min(defaultRetryMax, timeout/2) / 2,
		Multiplier:          2,
		RandomizationFactor: 1,
	}
}

// WithTimeout asks the server for a session timeout; the server may grant
// another (see [Session.Timeout]). A holder that is cut off is told before the
// timeout has passed, and others get its locks soon after. Default: 10 s.
func WithTimeout(d time.Duration) Option {
	return option(func(c *config) error {
		if d < time.Millisecond || d > math.MaxInt32*time.Millisecond {
			return invalidf("session timeout %v is not between 1 ms and %v", d, math.MaxInt32*time.Millisecond)
		}
		c.timeout = d
		return nil
	})
}

// WithTickTime says how long a tick of the servers is: tickTime in their configuration. A
// leader hears of the clients of other servers only twice a tick, so half a tick is taken
// off every lease. The right tick makes leases longer; one that is too short makes them
// wrong. Default: the manager learns the tick from the shortest session timeout that the
// servers grant, for which it opens a short session of its own; until then it takes a
// quarter of the session timeout for half a tick.
func WithTickTime(d time.Duration) Option {
	return option(func(c *config) error {
		if d < time.Millisecond || d > time.Hour {
			return invalidf("tick %v is not between 1 ms and 1 h", d)
		}
		c.tick = d
		return nil
	})
}

// WithMargin sets how long before the earliest expiry by the servers a session counts as
// lost. It covers clocks that run at different rates, and threads that run late. That a
// leader hears of followers' clients only now and then is counted apart from it: see
// [WithTickTime]. If the servers grant a timeout of less than twice the margin, half that
// timeout is used. Default: a tenth of the granted timeout.
func WithMargin(d time.Duration) Option {
	return option(func(c *config) error {
		if d <= 0 {
			return invalidf("margin %v is not positive", d)
		}
		c.margin = d
		return nil
	})
}

// WithConnectTimeout bounds one attempt to reach a server: the dial, and TLS. It does not
// bound the time to resolve names, nor that for the server's greeting. While there is a
// session to lose, an attempt takes at most half of what remains of it. An attempt that is
// slow holds up nobody: after a second or less another server is dialled beside it.
// Default: the session timeout, but no more than 15 s.
func WithConnectTimeout(d time.Duration) Option {
	return option(func(c *config) error {
		if d <= 0 {
			return invalidf("connect timeout %v is not positive", d)
		}
		c.connectTimeout = d
		return nil
	})
}

// WithRetry sets how long to wait before each new try of a request, and before
// each new dial; the first dial after a disconnection goes to another server at
// once. newBackOff is called once per request and must return a fresh value each
// time, and Connect fails if it returns nil; if that says [backoff.Stop], the request fails
// with the error of its last try, while dialling goes on from the first wait. Guaranteed
// deletes never stop. While there is a session to lose, waits between dials are below a
// second and below an eighth of what remains of the session, whatever newBackOff says.
// It also sets how long a lock waits before it tries again what a server has undone more than
// twice in a row, for example by deleting the lock's node.
// Default: exponential with full jitter, from 50 ms to half the session timeout but no more
// than 15 s, without end: requests give up when their context or the session ends.
func WithRetry(newBackOff func() backoff.BackOff) Option {
	return option(func(c *config) error {
		if newBackOff == nil {
			return invalidf("nil retry function")
		}
		if newBackOff() == nil {
			return invalidf("a retry function that returns nil")
		}
		c.retry = newBackOff
		return nil
	})
}

// WithAuth presents an identity to the servers, on every connection and before
// anything else, for example ("digest", []byte("user:password")). It may be given
// more than once. Without [WithTLS] it can be read on the way. A server does not know
// which passwords are right: with a wrong one requests fail with [zk.ErrNoAuth]. An identity
// that it does refuse, as of a scheme that it does not have, makes Connect fail with
// [zk.ErrAuthFailed], and ends a session that is there already as lost. Default: none.
func WithAuth(scheme string, credential []byte) Option {
	return option(func(c *config) error {
		if scheme == "" {
			return invalidf("empty auth scheme")
		}
		c.auths = append(c.auths, wire.Identity{Scheme: scheme, Credential: append([]byte(nil), credential...)})
		return nil
	})
}

// WithACL sets the access control list of every node that is made, parents
// included. A directory that is there already keeps its own: who may delete in it can
// break the locks in it, since ZooKeeper asks the parent for the right to delete. Who may
// not read a lock's directory cannot see who is in it, but can see that it is there and how
// many children it has: ZooKeeper lets everybody ask for that. Default: anyone may do
// anything.
func WithACL(acl ...zk.ACL) Option {
	return option(func(c *config) error {
		if len(acl) == 0 {
			return invalidf("empty ACL")
		}
		c.acl = append([]zk.ACL(nil), acl...)
		return nil
	})
}

// WithTLS speaks TLS to the servers. Where cfg names no server, the host of the
// connect string is verified. A server that is not to be trusted, or does not trust us, is
// tried again like one that is not there; Connect and [Manager.Session] say why when their
// context ends. Default: plain TCP.
func WithTLS(cfg *tls.Config) Option {
	return option(func(c *config) error {
		if cfg == nil {
			return invalidf("nil TLS config")
		}
		c.tls = cfg.Clone()
		return nil
	})
}

// WithDialer replaces the TCP dialer. It is given the host and port of the connect
// string, unresolved, and must honour ctx. Several calls can be under way at once, and what
// they return need not support deadlines. Default: names are resolved again on each round
// through the servers and after each disconnection, and each address is dialled by
// [net.Dialer].
func WithDialer(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	return option(func(c *config) error {
		if dial == nil {
			return invalidf("nil dialer")
		}
		c.dial = dial
		return nil
	})
}

// WithLogger sets where to log: losses and refusals as warnings, connections as
// information, the rest for debugging. Default: [slog.Default] at Connect.
func WithLogger(log *slog.Logger) Option {
	return option(func(c *config) error {
		if log == nil || log.Handler() == nil {
			return invalidf("nil logger, or one without a handler")
		}
		c.log = log
		return nil
	})
}

// WithTrace sets the hooks to call. Default: none.
func WithTrace(t Trace) Option {
	return option(func(c *config) error {
		c.trace = t
		return nil
	})
}

// WithMaxNodes bounds the ephemeral nodes that one session owns: a server has to
// delete them in one transaction when the session ends, and one too large has
// brought ensembles down. A create past it fails with [ErrTooManyNodes].
// Default: 8192.
func WithMaxNodes(n int) Option {
	return option(func(c *config) error {
		if n <= 0 {
			return invalidf("max nodes %d is not positive", n)
		}
		c.maxNodes = n
		return nil
	})
}

// WithLossOnSuspend makes every disconnection a loss of the session, as Curator's
// StandardErrorPolicy does. Default: a session survives disconnection for as long
// as it is certain.
func WithLossOnSuspend() Option {
	return option(func(c *config) error {
		c.lossOnSuspend = true
		return nil
	})
}

// WithName names the ensemble. [Manager.FullName] begins with the name instead of the servers of
// the connect string, so that it is the same in every process, whatever servers each of them
// connects to and however it calls them. All processes must give one ensemble the same name, and
// two ensembles different ones: zklock.Multi orders locks by full names, and two processes that
// order the same locks differently can wait for each other for ever. The name is a text of
// printable characters without a slash; upper and lower case differ. Default: the servers as
// given to Connect, in sorted order.
func WithName(name string) Option {
	return option(func(c *config) error {
		if err := checkName(name); err != nil {
			return err
		}
		c.name = name
		return nil
	})
}

func checkName(name string) error {
	if name == "" {
		return invalidf("empty name of the ensemble")
	}
	for _, r := range name {
		if r == '/' || r == utf8.RuneError || !unicode.IsPrint(r) {
			return invalidf("name %q of the ensemble: want printable characters without a slash", name)
		}
	}
	return nil
}
