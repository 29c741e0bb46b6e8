package session

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// dialer makes all connections of a manager. It lives longer than a session, so
// that sessions which are lost as soon as they are made are not made in a tight
// loop.
type dialer struct {
	cfg   *config
	hosts *hosts
	tick  tick

	// useful: the last connection was of use. See answered.
	useful atomic.Bool

	attempts sync.WaitGroup // dials under way, those of races that are over included

	mu      sync.Mutex
	wait    backoff.BackOff
	started bool  // wait has been used since the last useful connection
	failure error // the last attempt's; nil once a server has answered
	fault   error // why the last connection was given up, if for what the server sent
}

const (
	// mostDials is how many dials of one race may be under way. It is for servers that do
	// not answer at all, of which there should be no more than half; where all of them are
	// slow, it bounds what they have to do in vain.
	mostDials = 4
	// usefulAfter is how long after its greeting a connection must still give answers to be
	// of use. There are proxies that close each connection after one answer.
	usefulAfter = time.Second
	// tlsCloseTimeout bounds how long closing a connection waits for the other side to take
	// the news. That is 5 s in crypto/tls, and for ever where the connection has no
	// deadlines.
	tlsCloseTimeout = 100 * time.Millisecond
)

// stake returns how long a session goes on without a connection: what is lost if none is made
// in time. 0 or less, or a nil stake, say that there is no session to lose.
type stake = func() time.Duration

func atStake(s stake) time.Duration {
	if s == nil {
		return 0
	}
	return max(0, s())
}

func newDialer(cfg *config) *dialer {
	lookup := cfg.lookup
	if lookup == nil && cfg.dial == nil {
		lookup = net.DefaultResolver.LookupHost
	}
	return &dialer{cfg: cfg, hosts: newHosts(cfg.servers, lookup), tick: tick{told: cfg.tick}, wait: cfg.retry()}
}

// close waits for what is still under way, if ctx does not end before. There must be no
// further dials.
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
	case <-ctx.Done(): // a dialer of the user's that does not honour its context
	}
}

// dial connects to a server: the first dial is made at once after a connection that was of
// use, and later ones after growing waits, which are short while a session is at stake. It
// returns when connected or when ctx ends.
func (d *dialer) dial(ctx context.Context, s stake) (net.Conn, target, error) {
	return d.race(ctx, s, func() time.Duration { return d.nextWait(s) })
}

// dialNow connects to a server for no session, with waits of its own.
func (d *dialer) dialNow(ctx context.Context) (net.Conn, target, error) {
	var wait backoff.BackOff
	return d.race(ctx, nil, func() time.Duration {
		if wait == nil {
			wait = d.cfg.retry()
			return 0
		}
		return untiring(wait)
	})
}

// step is what one dial of a race tells: first to where it goes, then how it ended.
type step struct {
	to   target
	conn net.Conn
	err  error
}

// race dials one server after another until there is a connection. A dial begins when wait
// says so, after the one before has failed; and when the one before has not come to an end
// within pace, which does not end it: what is slow can still win. So servers that do not
// answer cost little, and neither do networks on which a handshake takes seconds.
func (d *dialer) race(ctx context.Context, s stake, wait func() time.Duration) (net.Conn, target, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the other dials
	steps := make(chan step)
	next := time.NewTimer(wait())
	defer next.Stop()
	var to target // of the last dial
	for racing := 0; ctx.Err() == nil; {
		select {
		case <-next.C:
			if racing > 0 {
				d.noteSlow(to)
			}
			racing++
			d.attempts.Go(func() { d.attempt(ctx, s, steps) })
		case now := <-steps:
			switch {
			case now.conn != nil:
				cancel()
				d.hosts.won(now.to)
				return now.conn, now.to, nil
			case now.err != nil:
				racing--
				next.Reset(wait())
			default:
				to = now.to
				if racing < mostDials {
					next.Reset(pace(atStake(s)))
				}
			}
		case <-ctx.Done():
		}
	}
	return nil, target{}, ctx.Err()
}

// attempt makes one dial of a race.
func (d *dialer) attempt(ctx context.Context, s stake, steps chan<- step) {
	tell := func(one step) {
		select {
		case steps <- one:
		case <-ctx.Done(): // the race is over
			if one.conn != nil {
				one.conn.Close()
			}
		}
	}
	to, err := d.hosts.next(ctx)
	if err != nil {
		d.failed(ctx, err)
		tell(step{err: err})
		return
	}
	tell(step{to: to})
	limited, cancel := context.WithTimeout(ctx, d.dialLimit(s))
	defer cancel()
	c, err := d.connect(limited, to)
	if err != nil {
		err = fmt.Errorf("connect to %s: %w", to.addr, err)
		d.failed(ctx, err)
		tell(step{to: to, err: err})
		return
	}
	tell(step{to: to, conn: &unheard{Conn: c, addr: to.addr, tell: d.setFailure}})
}

// failed notes why a dial has failed, unless it lost its race.
func (d *dialer) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		d.setFailure(err)
		d.cfg.log.Debug("zookeeper dial failed", "err", err)
	}
}

// pace returns how long a dial may be under way before another begins beside it, and, while
// a session is at stake, bounds the waits after dials that have failed. To be connected again
// matters more then than to spare the servers.
func pace(atStake time.Duration) time.Duration {
	const most, least = time.Second, 20 * time.Millisecond
	if atStake <= 0 {
		return most
	}
	return max(least, min(most, atStake/8)).Truncate(time.Millisecond)
}

// dialLimit bounds one dial with its TLS. Half of what is at stake leaves the rest for the
// server's greeting, and for another server.
func (d *dialer) dialLimit(s stake) time.Duration {
	if left := atStake(s); left > 0 {
		return min(d.cfg.connectTimeout, half(left))
	}
	return d.cfg.connectTimeout
}

// handshakeLimit returns how long a server may take for its greeting, which is one answer to
// one request. Without a session at stake there is nothing to be had by haste. With one it is
// half of what remains: enough for the slowest of networks on which the session could live,
// and as much is left to try another server.
func (d *dialer) handshakeLimit(s stake) time.Duration {
	if left := atStake(s); left > 0 {
		return half(left)
	}
	return d.cfg.timeout
}

// half returns half of what is at stake, in whole milliseconds.
func half(left time.Duration) time.Duration {
	return max(time.Millisecond, (left / 2).Truncate(time.Millisecond))
}

// unheard is a connection on which no server has answered yet. That it ends before is why
// there is no session: with TLS 1.3, for example, a client whose certificate is refused
// learns of it after its own part of the handshake.
type unheard struct {
	net.Conn
	addr  string
	tell  func(error)
	heard bool // only the reader uses it
}

func (u *unheard) Read(b []byte) (int, error) {
	n, err := u.Conn.Read(b)
	switch {
	case u.heard:
	case n > 0:
		u.heard = true
		u.tell(nil)
	case err != nil && !errors.Is(err, net.ErrClosed): // not by ourselves
		u.tell(fmt.Errorf("connect to %s: no answer: %w", u.addr, err))
	}
	return n, err
}

// connect dials one address.
func (d *dialer) connect(ctx context.Context, t target) (net.Conn, error) {
	open := d.cfg.dial
	if open == nil {
		open = new(net.Dialer).DialContext
	}
	c, err := open(ctx, "tcp", t.addr)
	if err != nil || d.cfg.tls == nil {
		return c, err
	}
	cfg := d.cfg.tls
	if cfg.ServerName == "" { // it is sent also where InsecureSkipVerify has nothing verified
		cfg = cfg.Clone()
		cfg.ServerName = t.host
	}
	secure := tls.Client(c, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, err
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

// answered is told of each answer that came through the leader, and how long after its
// greeting the connection gave it. Nothing less shows that the connection is of use: some
// servers greet and take identities, and then hang up on whatever is asked, for lack of the
// identity that they insist on for example.
func (d *dialer) answered(since time.Duration) {
	if since >= usefulAfter {
		d.useful.Store(true)
	}
}

// nextWait returns how long to wait before the next dial.
func (d *dialer) nextWait(s stake) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.useful.Swap(false) {
		d.fault = nil
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

// hurried bounds a wait while a session is at stake. What is bounded keeps some jitter: the
// clients of a server that has gone should not all come back at once.
func hurried(wait, atStake time.Duration) time.Duration {
	most := pace(atStake)
	if atStake <= 0 || wait < most {
		return wait
	}
	return most/2 + wait%(most/2) // wait has the jitter of WithRetry
}

// untiring returns the next wait of b for what is never given up: after b has said
// stop it begins again.
func untiring(b backoff.BackOff) time.Duration {
	d := b.NextBackOff()
	if d == backoff.Stop {
		b.Reset()
		d = b.NextBackOff()
	}
	if d == backoff.Stop { // it knows nothing else
		d = time.Second
	}
	return d
}

func (d *dialer) setFailure(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure = err
}

// noteSlow notes that a dial has come to no end yet, where nothing else is known.
func (d *dialer) noteSlow(t target) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure == nil {
		d.failure = fmt.Errorf("connect to %s: no answer yet", t.addr)
	}
}

// distrust notes that a server sends what no server sends. Whatever it has answered before,
// the next connection is not made at once.
func (d *dialer) distrust(why error) {
	d.useful.Store(false)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = why
}

// lastFailure says why there is no connection, or none that is of use.
func (d *dialer) lastFailure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return cmp.Or(d.failure, d.fault)
}

// pause waits for d, or returns the error of a ctx that ends before.
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
