// Package dial makes connections to the servers of a connect string: names and their addresses, several dials at once,
// TLS, and the waits between dials. It knows no session but by how long one is still certain.
package dial

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/turnstile-go/turnstile/internal/callout"
	"github.com/turnstile-go/turnstile/internal/logbook"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// Config says where to dial, and how.
type Config struct {
	Servers        []Server
	Resolve        func(ctx context.Context) ([]string, error)                       // of the user; nil: Servers are all
	Dial           func(ctx context.Context, network, addr string) (net.Conn, error) // of the user; nil: that of package net
	Lookup         func(ctx context.Context, host string) ([]string, error)          // nil: that of package net, unless Dial is set
	TLS            *tls.Config                                                       // nil: plain TCP
	ConnectTimeout time.Duration                                                     // of one dial with its TLS handshake
	Timeout        time.Duration                                                     // of the session that is asked for
	Retry          func() backoff.BackOff
	Log            *slog.Logger
	Terms          logbook.Terms
}

// Server is one server of a connect string, as the user named it.
type Server struct{ Host, Port string }

func (s Server) String() string { return net.JoinHostPort(s.Host, s.Port) }

// Dialer makes all connections of a manager. It outlives sessions, so that a manager whose
// sessions are lost as soon as they are opened does not open them in a tight loop.
type Dialer struct {
	// Logbook is told how the dials go.
	Logbook *logbook.Logbook

	cfg   Config
	hosts *hosts

	// useful says that the last connection was of use. See Answered.
	useful atomic.Bool

	attempts sync.WaitGroup // dials in progress, including those of races that are over, and what Go has begun

	waitMu  sync.Mutex // held while the user's BackOff runs, which may call the manager: so no other lock is
	wait    backoff.BackOff
	started bool // wait was used since the last useful connection

	mu      sync.Mutex
	failure error // of the last attempt; nil once a server has answered
	fault   error // what the server sent wrong, if the last connection was closed for that
	closed  bool
}

const (
	// mostDials is how many dials of one race may run at once. More than one helps if some
	// servers, at most half of them, do not answer at all. The bound limits useless work if all
	// servers are slow.
	mostDials = 4
	// usefulAfter is how long after its greeting a connection must still give answers to count
	// as useful. There are proxies that close each connection after one answer.
	usefulAfter = time.Second
	// tlsCloseTimeout bounds how long closing a connection waits to send the TLS alert. In
	// crypto/tls that is 5 s, and without a bound if the connection has no deadlines.
	tlsCloseTimeout = 100 * time.Millisecond
)

// Remaining returns for how long a session is certain without a connection. After that time it is
// lost. A result of 0 or less means that there is no session to lose.
type Remaining = func() time.Duration

// New returns a dialer, which Close ends.
func New(cfg Config) *Dialer {
	if cfg.Lookup == nil && cfg.Dial == nil {
		cfg.Lookup = net.DefaultResolver.LookupHost
	}
	h := newHosts(cfg.Servers, cfg.Lookup)
	if cfg.Resolve != nil {
		h.list = &list{ask: cfg.Resolve, limit: cfg.ConnectTimeout, complain: func(bad string) {
			cfg.Log.Warn("the resolver names a server that cannot be one", "err", bad)
		}}
	}
	return &Dialer{cfg: cfg, hosts: h, wait: cfg.Retry(), Logbook: logbook.New(cfg.Log, cfg.Terms, h.failedNames)}
}

// Go runs f in a goroutine, for which Close waits. A closed dialer does not run it.
func (d *Dialer) Go(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.attempts.Go(f)
	}
}

// Close waits for all dials and lookups, or until ctx ends. A dial that comes later, such as that of a
// teardown that has given up, waits until its own context ends.
func (d *Dialer) Close(ctx context.Context) {
	d.hosts.end()
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.attempts.Wait() // first: a dial begins lookups
		d.hosts.lookups.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done(): // the user's dialer does not honour its context
	}
}

// Dial connects to a server. It dials at once after a connection that was of use, and otherwise
// after growing waits, which are short while a session can be lost. It returns when connected or
// when ctx ends.
func (d *Dialer) Dial(ctx context.Context, s Remaining) (net.Conn, logbook.Target, error) {
	c, to, err := d.race(ctx, s, func() time.Duration { return d.nextWait(s) }, false)
	if err != nil {
		return nil, to, err
	}
	d.waiting(&logbook.Failure{Step: logbook.StepHandshake, To: to, Err: logbook.ErrNoAnswer})
	return c, to, nil
}

// DialNow connects to a server for something other than the session. It dials at once, and has
// waits of its own. It says nothing about why there is no session.
func (d *Dialer) DialNow(ctx context.Context) (net.Conn, logbook.Target, error) {
	var wait backoff.BackOff
	nothing := func() time.Duration { return 0 }
	return d.race(ctx, nothing, func() time.Duration {
		if wait == nil {
			wait = d.cfg.Retry()
			return 0
		}
		return rounds.Untiring(wait)
	}, true)
}

// step is what one dial of a race reports: first where it goes, then how it ended.
type step struct {
	to   logbook.Target
	conn net.Conn
	err  error
}

// race dials one server after another until there is a connection. A dial begins when the dial
// before it has failed and wait has passed. A dial also begins when the one before it has run for
// longer than pace. The slow dial goes on and can still win. So servers that do not answer cost
// little time, and so do networks on which a handshake takes seconds.
func (d *Dialer) race(
	ctx context.Context, s Remaining, wait func() time.Duration, aside bool,
) (net.Conn, logbook.Target, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the other dials
	steps := make(chan step)
	var (
		to     logbook.Target   // of the last dial
		racing int              // dials that have begun and not failed
		next   <-chan time.Time // says when another begins
	)
	begin := func() {
		if racing > 0 && !aside {
			d.waiting(&logbook.Failure{Step: logbook.StepDial, To: to, Err: logbook.ErrNoAnswer})
		}
		racing++
		next = nil
		d.Go(func() { d.attempt(ctx, s, steps, aside) })
	}
	// No wait needs no timer, and timers that are due at once can crash the race detector: see .ci/race.
	beginAfter := func(wait time.Duration) {
		if wait > 0 {
			next = time.After(wait)
			return
		}
		begin()
	}
	if ctx.Err() == nil {
		beginAfter(wait())
	}
	for ctx.Err() == nil {
		select {
		case <-next:
			begin()
		case now := <-steps:
			switch {
			case now.conn != nil:
				cancel()
				d.hosts.won(now.to)
				return now.conn, now.to, nil
			case now.err != nil:
				racing--
				beginAfter(wait())
			default:
				to = now.to
				if racing < mostDials {
					next = time.After(pace(s()))
				}
			}
		case <-ctx.Done():
		}
	}
	return nil, logbook.Target{}, ctx.Err()
}

// attempt makes one dial of a race.
func (d *Dialer) attempt(ctx context.Context, s Remaining, steps chan<- step, aside bool) {
	tell := func(one step) {
		select {
		case steps <- one:
		case <-ctx.Done(): // the race has ended
			if one.conn != nil {
				one.conn.Close()
			}
		}
	}
	fail := func(to logbook.Target, err error) {
		if ctx.Err() == nil { // no other dial has won
			if !aside {
				d.Failed(err)
			}
			d.cfg.Log.Debug("zookeeper dial failed", "err", err)
		}
		tell(step{to: to, err: err})
	}
	to, err := d.hosts.next(ctx)
	if err != nil {
		fail(logbook.Target{}, err)
		return
	}
	tell(step{to: to})
	limited, cancel := context.WithTimeout(ctx, d.dialLimit(s))
	defer cancel()
	var c net.Conn
	if !callout.Guarded(func() { c, err = d.connect(limited, to) }) { // the dialer and the TLS config are the user's
		err = &logbook.Failure{Step: logbook.StepDial, To: to, Err: errGoexit}
	}
	if err != nil {
		fail(to, err)
		return
	}
	tell(step{to: to, conn: c})
}

// errGoexit is the reason if the user's code has ended the goroutine in which it was called.
var errGoexit = errors.New("the dialer, or a function of the TLS config, has called runtime.Goexit")

// pace returns how long a dial may run before another begins beside it. While a session is at
// stake, pace also bounds the waits after failed dials, because a connection in time is then more
// important than sparing the servers.
func pace(atStake time.Duration) time.Duration {
	const most, least = time.Second, 20 * time.Millisecond
	if atStake <= 0 {
		return most
	}
	return max(least, min(most, atStake/8)).Truncate(time.Millisecond)
}

// dialLimit bounds one dial with its TLS handshake. It takes half of what remains of the session,
// and leaves the rest for the server's greeting and for another server.
func (d *Dialer) dialLimit(s Remaining) time.Duration {
	if left := s(); left > 0 {
		return min(d.cfg.ConnectTimeout, half(left))
	}
	return d.cfg.ConnectTimeout
}

// HandshakeLimit returns how long a server may take for its greeting, which is one answer to one
// request. If no session is at stake, haste would gain nothing. Otherwise it is half of what
// remains of the session. That is enough on the slowest network on which the session could live,
// and leaves as much time for another server.
func (d *Dialer) HandshakeLimit(s Remaining) time.Duration {
	if left := s(); left > 0 {
		return half(left)
	}
	return d.cfg.Timeout
}

// half returns half of a duration, in whole milliseconds.
func half(left time.Duration) time.Duration {
	return max(time.Millisecond, (left / 2).Truncate(time.Millisecond))
}

// connect dials one address. Its errors are failures.
func (d *Dialer) connect(ctx context.Context, t logbook.Target) (net.Conn, error) {
	open := d.cfg.Dial
	if open == nil {
		open = new(net.Dialer).DialContext
	}
	c, err := open(ctx, "tcp", t.Addr)
	if err != nil {
		return nil, &logbook.Failure{Step: logbook.StepDial, To: t, Err: err}
	}
	boundUnsent(c)
	if d.cfg.TLS == nil {
		return c, nil
	}
	cfg := d.cfg.TLS
	if cfg.ServerName == "" { // the name is sent (SNI) even with InsecureSkipVerify
		cfg = cfg.Clone()
		cfg.ServerName = t.Host
	}
	secure := tls.Client(c, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, &logbook.Failure{Step: logbook.StepTLS, To: t, Err: err}
	}
	return &tlsConn{Conn: secure, under: c}, nil
}

// tlsConn is a TLS connection whose Close takes no longer than tlsCloseTimeout.
type tlsConn struct {
	*tls.Conn
	under net.Conn
}

func (c *tlsConn) Close() error {
	late := time.AfterFunc(tlsCloseTimeout, func() { c.under.Close() })
	defer late.Stop()
	return c.Conn.Close()
}

// Answered takes the time since the greeting of each answer that came through the leader. Only
// such an answer, a while after the greeting, shows that a connection is of use. Some servers
// greet and accept identities, and then hang up on the first request, for example because they
// insist on another identity.
func (d *Dialer) Answered(since time.Duration) {
	if since >= usefulAfter {
		d.useful.Store(true)
	}
}

// nextWait returns how long to wait before the next dial.
func (d *Dialer) nextWait(s Remaining) time.Duration {
	d.waitMu.Lock()
	defer d.waitMu.Unlock()
	if d.useful.Swap(false) {
		d.mu.Lock()
		d.fault = nil
		d.mu.Unlock()
		d.started = false
		d.hosts.renew()
	}
	if !d.started {
		d.wait.Reset()
		d.started = true
		return 0
	}
	return hurried(rounds.Untiring(d.wait), s())
}

// hurried bounds a wait while a session is at stake. A bounded wait keeps some jitter, because
// the clients of a server that went down should not all reconnect at the same time.
func hurried(wait, atStake time.Duration) time.Duration {
	most := pace(atStake)
	if atStake <= 0 || wait < most {
		return wait
	}
	return most/2 + wait%(most/2) // wait has the jitter of WithRetry
}

// Greeted takes note that a server has answered.
func (d *Dialer) Greeted() { d.setFailure(nil) }

// Useful takes note that the last connection was of use.
func (d *Dialer) Useful() { d.useful.Store(true) }

func (d *Dialer) setFailure(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure = err
}

// Failed takes why an attempt to get a session has failed.
func (d *Dialer) Failed(why error) {
	d.setFailure(why)
	d.Record(why)
}

// Record passes a failure on to the log.
func (d *Dialer) Record(why error) {
	switch why := why.(type) { //nolint:errorlint // these two come as they were made
	case *logbook.Failure:
		d.Logbook.Failed(why)
	case logbook.Failures: // of names
		for _, f := range why {
			d.Logbook.Failed(f)
		}
	}
}

// waiting takes what an attempt waits for. That is the reason only if there is no other failure to
// report.
func (d *Dialer) waiting(f *logbook.Failure) {
	d.Logbook.Waiting(f)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure == nil {
		d.failure = f
	}
}

// Distrust notes that a server has sent something wrong. The next dial then waits, even if the
// connection was of use before.
func (d *Dialer) Distrust(to logbook.Target, why error) {
	f := &logbook.Failure{Step: logbook.StepConnected, To: to, Err: why}
	d.Logbook.Broke(f)
	d.useful.Store(false)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure, d.fault = nil, f
}

// LastFailure returns why there is no connection, or no useful one.
func (d *Dialer) LastFailure() error {
	d.mu.Lock()
	why := cmp.Or(d.failure, d.fault)
	d.mu.Unlock()
	if names := d.hosts.failedNames(); why == nil && len(names) > 0 {
		return logbook.Failures(names)
	}
	return why
}
