package core

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/turnstile-go/turnstile/internal/callout"
	"github.com/turnstile-go/turnstile/internal/logbook"
)

// dialer makes all connections of a manager. It outlives sessions, so that a manager whose
// sessions are lost as soon as they are opened does not open them in a tight loop.
type dialer struct {
	cfg     *Config
	hosts   *hosts
	tick    tick
	logbook *logbook.Logbook

	// containers is here because what a manager learns of its servers outlives sessions too.
	containers *containers

	// useful says that the last connection was of use. See answered.
	useful atomic.Bool

	attempts sync.WaitGroup // dials in progress, including those of races that are over, and learnTick

	waitMu  sync.Mutex // held while the user's BackOff runs, which may call the manager: so no other lock is
	wait    backoff.BackOff
	started bool // wait was used since the last useful connection

	mu      sync.Mutex
	failure error // of the last attempt; nil once a server has answered
	fault   error // what the server sent wrong, if the last connection was closed for that
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

// stake returns for how long a session is certain without a connection. After that time it is
// lost. A nil stake, or a result of 0 or less, means that there is no session to lose.
type stake = func() time.Duration

func atStake(s stake) time.Duration {
	if s == nil {
		return 0
	}
	return max(0, s())
}

func newDialer(cfg *Config) *dialer {
	lookup := cfg.lookup
	if lookup == nil && cfg.Dial == nil {
		lookup = net.DefaultResolver.LookupHost
	}
	h := newHosts(cfg.servers, lookup)
	return &dialer{
		cfg: cfg, hosts: h, tick: tick{told: cfg.Tick}, wait: cfg.Retry(), containers: newContainers(),
		logbook: logbook.New(cfg.Log, logbook.Terms{Timeout: cfg.Timeout, Margin: cfg.Margin}, h.failedNames),
	}
}

// close waits for all dials and lookups, or until ctx ends. There must be no further dials.
func (d *dialer) close(ctx context.Context) {
	d.hosts.end()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.hosts.lookups.Wait()
		d.attempts.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done(): // the user's dialer does not honour its context
	}
}

// dial connects to a server. It dials at once after a connection that was of use, and otherwise
// after growing waits, which are short while a session is at stake. It returns when connected or
// when ctx ends.
func (d *dialer) dial(ctx context.Context, s stake) (net.Conn, logbook.Target, error) {
	c, to, err := d.race(ctx, s, func() time.Duration { return d.nextWait(s) }, d)
	if err != nil {
		return nil, to, err
	}
	d.waiting(&logbook.Failure{Step: logbook.StepHandshake, To: to, Err: logbook.ErrNoAnswer})
	return c, to, nil
}

// dialNow connects to a server for something other than the session. It dials at once, and has
// waits of its own.
func (d *dialer) dialNow(ctx context.Context) (net.Conn, logbook.Target, error) {
	var wait backoff.BackOff
	return d.race(ctx, nil, func() time.Duration {
		if wait == nil {
			wait = d.cfg.Retry()
			return 0
		}
		return untiring(wait)
	}, aside{})
}

// witness is told how the dials of a race go.
type witness interface {
	failed(why error)
	waiting(f *logbook.Failure) // f is the reason if nothing else happens
}

// aside is the witness of dials for something other than the session. They say nothing about why
// there is no session.
type aside struct{}

func (aside) failed(error)             {}
func (aside) waiting(*logbook.Failure) {}

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
func (d *dialer) race(
	ctx context.Context, s stake, wait func() time.Duration, w witness,
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
		if racing > 0 {
			w.waiting(&logbook.Failure{Step: logbook.StepDial, To: to, Err: logbook.ErrNoAnswer})
		}
		racing++
		next = nil
		d.attempts.Go(func() { d.attempt(ctx, s, steps, w) })
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
					next = time.After(pace(atStake(s)))
				}
			}
		case <-ctx.Done():
		}
	}
	return nil, logbook.Target{}, ctx.Err()
}

// attempt makes one dial of a race.
func (d *dialer) attempt(ctx context.Context, s stake, steps chan<- step, w witness) {
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
			w.failed(err)
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
	type dialled struct {
		net.Conn
		err error
	}
	c, returned := callout.Guarded(func() dialled { // the dialer and the TLS config are the user's
		c, err := d.connect(limited, to)
		return dialled{c, err}
	})
	if !returned {
		c.err = &logbook.Failure{Step: logbook.StepDial, To: to, Err: errGoexit}
	}
	if c.err != nil {
		fail(to, c.err)
		return
	}
	tell(step{to: to, conn: c.Conn})
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
func (d *dialer) dialLimit(s stake) time.Duration {
	if left := atStake(s); left > 0 {
		return min(d.cfg.ConnectTimeout, half(left))
	}
	return d.cfg.ConnectTimeout
}

// handshakeLimit returns how long a server may take for its greeting, which is one answer to one
// request. If no session is at stake, haste would gain nothing. Otherwise it is half of what
// remains of the session. That is enough on the slowest network on which the session could live,
// and leaves as much time for another server.
func (d *dialer) handshakeLimit(s stake) time.Duration {
	if left := atStake(s); left > 0 {
		return half(left)
	}
	return d.cfg.Timeout
}

// half returns half of a duration, in whole milliseconds.
func half(left time.Duration) time.Duration {
	return max(time.Millisecond, (left / 2).Truncate(time.Millisecond))
}

// connect dials one address. Its errors are failures.
func (d *dialer) connect(ctx context.Context, t logbook.Target) (net.Conn, error) {
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

// answered takes the time since the greeting of each answer that came through the leader. Only
// such an answer, a while after the greeting, shows that a connection is of use. Some servers
// greet and accept identities, and then hang up on the first request, for example because they
// insist on another identity.
func (d *dialer) answered(since time.Duration) {
	if since >= usefulAfter {
		d.useful.Store(true)
	}
}

// nextWait returns how long to wait before the next dial.
func (d *dialer) nextWait(s stake) time.Duration {
	d.waitMu.Lock()
	defer d.waitMu.Unlock()
	if d.useful.Swap(false) {
		d.setFault(nil)
		d.started = false
		d.hosts.renew()
	}
	if !d.started {
		d.wait.Reset()
		d.started = true
		return 0
	}
	return hurried(untiring(d.wait), atStake(s))
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

// untiring returns the next wait of b for work that is never given up. After b has said stop, it
// begins again.
func untiring(b backoff.BackOff) time.Duration {
	d := b.NextBackOff()
	if d == backoff.Stop {
		b.Reset()
		d = b.NextBackOff()
	}
	if d == backoff.Stop { // b always says stop
		d = time.Second
	}
	return d
}

func (d *dialer) setFault(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = err
}

func (d *dialer) setFailure(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure = err
}

// failed takes why an attempt to get a session has failed.
func (d *dialer) failed(why error) {
	d.setFailure(why)
	d.record(why)
}

// record passes a failure on to the log.
func (d *dialer) record(why error) {
	switch why := why.(type) { //nolint:errorlint // these two come as they were made
	case *logbook.Failure:
		d.logbook.Failed(why)
	case logbook.Failures: // of names
		for _, f := range why {
			d.logbook.Failed(f)
		}
	}
}

// waiting takes what an attempt waits for. That is the reason only if there is no other failure to
// report.
func (d *dialer) waiting(f *logbook.Failure) {
	d.logbook.Waiting(f)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure == nil {
		d.failure = f
	}
}

// distrust notes that a server has sent something wrong. The next dial then waits, even if the
// connection was of use before.
func (d *dialer) distrust(to logbook.Target, why error) {
	f := &logbook.Failure{Step: logbook.StepConnected, To: to, Err: why}
	d.logbook.Broke(f)
	d.useful.Store(false)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure, d.fault = nil, f
}

// lastFailure returns why there is no connection, or no useful one.
func (d *dialer) lastFailure() error {
	d.mu.Lock()
	why := cmp.Or(d.failure, d.fault)
	d.mu.Unlock()
	if names := d.hosts.failedNames(); why == nil && len(names) > 0 {
		return logbook.Failures(names)
	}
	return why
}

// pause waits for d. If ctx ends before, it returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
