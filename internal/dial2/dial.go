// Package dial makes connections to the servers of a connect string, one after another. It knows no session but by how
// long one is still certain.
package dial

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Config says where to dial, and how.
type Config struct {
	Servers []Server
	Resolve func(ctx context.Context) ([]string, error)                       // of the user; nil: Servers are all
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error) // of the user; nil: that of package net
	Lookup  func(ctx context.Context, host string) ([]string, error)          // nil: that of package net, unless Dial is set
	TLS     *tls.Config                                                       // nil: plain TCP
	Timeout time.Duration                                                     // of the session that is asked for
	Waits   Backoff                                                           // between dials
}

// Dialer makes all connections of a manager. It outlives sessions, so that a manager whose sessions are lost as soon as
// they are opened does not open them in a tight loop.
type Dialer struct {
	cfg     Config
	hosts   hosts
	end     context.CancelFunc
	running sync.WaitGroup // lookups, and dials

	// useful says that the last connection was of use: an answer came through the leader a while after the greeting. Some
	// servers greet and accept identities, and then hang up on the first request. Some proxies hang up after one answer.
	useful atomic.Bool
	waited bool // Waits was used since the last useful connection
}

const (
	usefulAfter     = time.Second
	tlsCloseTimeout = 100 * time.Millisecond // crypto/tls waits for 5 s to send its alert
	// firstLimit bounds the dials of the first round. Each further round has twice as long, up to mostLimit. So a server
	// that does not answer costs a second, and a network on which a handshake takes seconds only some rounds.
	firstLimit = time.Second
	mostLimit  = 16 * time.Second
)

// Remaining returns for how long a session is certain without a connection, or 0 if there is none to lose.
type Remaining = func() time.Duration

// New returns a dialer, which Close ends.
func New(cfg Config) *Dialer {
	if cfg.Lookup == nil && cfg.Dial == nil {
		cfg.Lookup = net.DefaultResolver.LookupHost
	}
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	d := &Dialer{cfg: cfg}
	d.hosts = hosts{
		lookup: cfg.Lookup, servers: cfg.Servers, running: &d.running,
		found: make(map[string][]string), errs: make(map[string]error), asking: make(map[string]chan struct{}),
	}
	d.hosts.life, d.end = context.WithCancel(context.Background())
	if cfg.Resolve != nil {
		d.hosts.resolve = func(ctx context.Context) ([]Server, error) {
			answer, err := cfg.Resolve(ctx)
			if err != nil {
				return nil, err
			}
			return ParseList(answer)
		}
	}
	return d
}

// Close ends the lookups. It waits for them and for dials until ctx ends: the resolver and the dialer may be the user's.
func (d *Dialer) Close(ctx context.Context) {
	d.end()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.running.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// Dial dials the next server, once. It does that at once after a connection that was of use, and otherwise after growing
// waits, which are short while a session can be lost. It returns ctx.Err() when ctx ends, and otherwise why there is no
// connection: then the caller dials again. It is for one goroutine, that of the sessions.
func (d *Dialer) Dial(ctx context.Context, left Remaining) (net.Conn, Target, error) {
	if err := pause(ctx, d.nextWait(left)); err != nil {
		return nil, Target{}, err
	}
	return d.once(ctx, left)
}

// DialNow dials the next server, once and at once, for something other than the session.
func (d *Dialer) DialNow(ctx context.Context) (net.Conn, Target, error) {
	return d.once(ctx, func() time.Duration { return 0 })
}

// pause waits for d. If ctx ends before, it returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 { // timers that are due at once can crash the race detector: see .ci/race
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

// once dials the next server.
func (d *Dialer) once(ctx context.Context, left Remaining) (net.Conn, Target, error) {
	to, round, err := d.hosts.next(ctx)
	if err != nil {
		return nil, to, err
	}
	limit := min(firstLimit<<min(round, 6), mostLimit)
	if left := left(); left > 0 {
		limit = min(limit, max(left/3, time.Millisecond))
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := d.connect(limited, to)
	if err := ctx.Err(); err != nil {
		if c != nil {
			c.Close()
		}
		return nil, to, err
	}
	if err != nil {
		err = fmt.Errorf("dial %s: %w", to, err)
	}
	return c, to, err
}

func (d *Dialer) connect(ctx context.Context, to Target) (net.Conn, error) {
	c, err := d.cfg.Dial(ctx, "tcp", to.Addr)
	if err != nil {
		return nil, noAnswer(ctx, err)
	}
	boundUnsent(c)
	if d.cfg.TLS == nil {
		return c, nil
	}
	cfg := d.cfg.TLS
	if cfg.ServerName == "" { // the name is sent (SNI) even with InsecureSkipVerify
		cfg = cfg.Clone()
		cfg.ServerName = to.Host
	}
	secure := tls.Client(c, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("TLS: %w", noAnswer(ctx, err))
	}
	return &tlsConn{Conn: secure, under: c}, nil
}

func noAnswer(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errors.New("no answer")
	}
	return err
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

// HandshakeLimit returns how long a server may take for its greeting: in the first round a quarter of what remains of the
// session, because a server that stands still accepts connections too, and later half.
func (d *Dialer) HandshakeLimit(left Remaining) time.Duration {
	if left := left(); left > 0 {
		if d.hosts.firstRound() {
			return max(time.Millisecond, left/4)
		}
		return max(time.Millisecond, left/2)
	}
	return d.cfg.Timeout
}

// pace bounds the waits between dials while a session is at stake.
func pace(atStake time.Duration) time.Duration {
	return max(20*time.Millisecond, min(time.Second, atStake/8))
}

func (d *Dialer) nextWait(left Remaining) time.Duration {
	useful := d.useful.Swap(false)
	if useful {
		d.hosts.renew()
	}
	if useful || !d.waited {
		d.cfg.Waits.Reset()
		d.waited = true
		return 0
	}
	wait := d.cfg.Waits.Next()
	if left := left(); left > 0 && wait > pace(left) {
		wait = pace(left)/2 + wait%(pace(left)/2) // it keeps some of its jitter
	}
	return wait
}

// Answered takes the time since the greeting of an answer that came through the leader.
func (d *Dialer) Answered(since time.Duration) {
	if since >= usefulAfter && !d.useful.Load() {
		d.useful.Store(true)
	}
}

// Useful takes note that the last connection was of use.
func (d *Dialer) Useful() { d.useful.Store(true) }

// Distrust is the opposite of Useful: a server has sent something wrong, and the next dial waits.
func (d *Dialer) Distrust() { d.useful.Store(false) }
