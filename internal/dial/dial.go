// Package dial makes connections to the servers of a connect string, one after another.
package dial

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/turnstile-go/turnstile/internal/rounds"
)

// Config says where to dial, and how. The functions are the program's: they run under no lock, on goroutines that are
// left behind if they hang.
type Config struct {
	Servers []Server
	Resolve func(ctx context.Context) ([]string, error)                       // the servers of each round; nil: Servers
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error) // nil: net.Dialer
	Lookup  func(ctx context.Context, host string) ([]string, error)          // nil: net.DefaultResolver, unless Dial is set
	TLS     *tls.Config                                                       // nil: plain TCP
	Timeout time.Duration                                                     // of a handshake without a session
	Waits   rounds.Backoff
}

// Dialer makes all connections of a manager. It outlives sessions, so that sessions which are lost at once are not
// opened in a tight loop.
type Dialer struct {
	cfg   Config
	hosts hosts
	end   context.CancelFunc

	turn   rotation
	aside  rotation // for others than the session
	slots  chan struct{}
	waited bool // since the last useful connection

	// useful: an answer came through the leader a while after the last greeting. Some servers hang up on the first
	// request, and some proxies after one answer.
	useful atomic.Bool

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

const (
	// firstLimit bounds the dials of the first round. It doubles each round, up to mostLimit and a third of what
	// remains of a session.
	firstLimit  = time.Second
	mostLimit   = 16 * time.Second
	usefulAfter = time.Second
	// tlsCloseTimeout bounds the TLS alert, which can take crypto/tls 5 s, or for ever without deadlines.
	tlsCloseTimeout = 100 * time.Millisecond
	// mostDeaf bounds the dials that hang.
	mostDeaf = 8
)

var errNoAnswer = errors.New("no answer")

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
	d := &Dialer{cfg: cfg, slots: make(chan struct{}, mostDeaf)}
	d.hosts = hosts{
		lookup: cfg.Lookup, resolve: cfg.Resolve, run: d.run,
		servers: cfg.Servers, names: make(map[string]*lookup), news: make(chan struct{}),
	}
	d.hosts.life, d.end = context.WithCancel(context.Background())
	return d
}

// run runs f in a goroutine for which Close waits. It reports false if the dialer is closed.
func (d *Dialer) run(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.running.Go(f)
	}
	return !d.closed
}

// Close ends the lookups, and further dials fail. It waits for all of them, or until ctx ends.
func (d *Dialer) Close(ctx context.Context) {
	d.end()
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
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

// Dial dials the next server, once: at once after a connection that was of use, and otherwise after growing waits,
// which are short while a session can be lost. It returns ctx.Err() if ctx has ended, and otherwise why there is no
// connection: call it again. It is for one goroutine at a time.
func (d *Dialer) Dial(ctx context.Context, left Remaining) (net.Conn, Target, error) {
	useful := d.useful.Swap(false)
	if useful {
		d.hosts.renew(&d.turn)
	}
	if useful || !d.waited {
		d.cfg.Waits.Reset()
		d.waited = true
	} else if err := rounds.Until(ctx, nil, hurried(d.cfg.Waits.Next(), left())); err != nil {
		return nil, Target{}, err
	}
	to, round, err := d.hosts.next(ctx, &d.turn)
	if err != nil {
		return nil, to, err
	}
	limit := min(firstLimit<<min(round, 6), mostLimit)
	if left := left(); left > 0 {
		limit = min(limit, max(left/3, time.Millisecond))
	}
	return d.dial(ctx, to, limit)
}

// DialNow dials at once, for something other than the session: first, or the next server if first has no address.
func (d *Dialer) DialNow(ctx context.Context, first Target) (net.Conn, Target, error) {
	if first.Addr != "" {
		return d.dial(ctx, first, firstLimit)
	}
	to, round, err := d.hosts.next(ctx, &d.aside)
	if err != nil {
		return nil, to, err
	}
	return d.dial(ctx, to, min(firstLimit<<min(round, 6), mostLimit))
}

// Unresolved returns what is wrong with the names of servers and the resolver's answer, or nil.
func (d *Dialer) Unresolved() error {
	d.hosts.mu.Lock()
	defer d.hosts.mu.Unlock()
	return d.hosts.failureLocked()
}

// HandshakeLimit returns how long the server of the last dial may take for its greeting: a quarter of what remains of
// the session in the first round, since a stopped server accepts connections too, and then half. Without a session,
// it is a part of the timeout, and from the third round on all of it.
func (d *Dialer) HandshakeLimit(left Remaining) time.Duration {
	d.hosts.mu.Lock()
	round := d.turn.round
	d.hosts.mu.Unlock()
	limit, most := left(), 2
	if limit <= 0 {
		limit, most = d.cfg.Timeout, 3
	}
	return max(limit>>(3-max(1, min(round, most))), time.Millisecond)
}

// Answered takes the time from the greeting to an answer that came through the leader.
func (d *Dialer) Answered(since time.Duration) {
	if since >= usefulAfter && !d.useful.Load() {
		d.useful.Store(true)
	}
}

// Useful has the next dial not wait, because the last connection was of use.
func (d *Dialer) Useful() { d.useful.Store(true) }

// Distrust has the next dial wait, because the server has sent something wrong.
func (d *Dialer) Distrust() { d.useful.Store(false) }

// hurried bounds a wait while a session is at stake. It keeps some jitter, so that the clients of a dead server do
// not all come at once.
func hurried(wait, atStake time.Duration) time.Duration {
	most := max(20*time.Millisecond, min(time.Second, atStake/8))
	if atStake <= 0 || wait <= most {
		return wait
	}
	return most/2 + wait%(most/2)
}

func (d *Dialer) dial(ctx context.Context, to Target, limit time.Duration) (net.Conn, Target, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var c net.Conn
	err := error(errDeaf)
	select {
	case d.slots <- struct{}{}:
		c, err = d.connect(limited, to)
	case <-limited.Done():
	}
	switch {
	case err == nil:
		return c, to, nil
	case ctx.Err() != nil:
		return nil, to, ctx.Err()
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		err = fmt.Errorf("no file descriptor is left: %w", err)
	case limited.Err() != nil && err != errDeaf: //nolint:errorlint // it comes as it is
		err = fmt.Errorf("%w within %v", errNoAnswer, limit)
	}
	if !errors.As(err, new(*Failure)) {
		err = &Failure{StepDial, to, err}
	}
	return nil, to, err
}

var errDeaf = fmt.Errorf("the dialer has not returned from %d calls whose contexts have ended", mostDeaf)

// connect gives its slot back when the dialer has returned.
func (d *Dialer) connect(ctx context.Context, to Target) (net.Conn, error) {
	type end struct {
		net.Conn
		error
	}
	ended := make(chan end)
	ok := d.run(func() {
		e := end{nil, errors.New("the dialer has not returned")} // stays if the dialer calls runtime.Goexit
		defer func() {
			<-d.slots
			select {
			case ended <- e:
			case <-ctx.Done():
				if e.error == nil {
					e.Close()
				}
			}
		}()
		e.Conn, e.error = d.open(ctx, to)
	})
	if !ok {
		<-d.slots
		return nil, net.ErrClosed
	}
	select {
	case e := <-ended:
		return e.Conn, e.error
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d *Dialer) open(ctx context.Context, to Target) (net.Conn, error) {
	c, err := d.cfg.Dial(ctx, "tcp", to.Addr)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, errors.New("the dialer has returned neither a connection nor an error")
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
		return nil, &Failure{StepTLS, to, err}
	}
	return &tlsConn{Conn: secure, under: c}, nil
}

type tlsConn struct {
	*tls.Conn
	under net.Conn
}

func (c *tlsConn) Close() error {
	late := time.AfterFunc(tlsCloseTimeout, func() { c.under.Close() })
	defer late.Stop()
	return c.Conn.Close()
}
