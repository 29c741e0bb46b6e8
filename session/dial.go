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
	"github.com/go-zookeeper/zk"
)

// dialer makes all connections of a manager. It lives longer than a session, so
// that sessions which are lost as soon as they are made are not made in a tight
// loop.
type dialer struct {
	cfg   *config
	hosts *hosts
	tick  tick

	// useful: a request was answered since the last dial. A greeting does not count, nor that
	// identities were taken: some servers hang up on whatever is asked then, for lack of the
	// identity that they insist on for example.
	useful atomic.Bool

	mu      sync.Mutex
	wait    backoff.BackOff
	started bool  // wait has been used since the last useful connection
	failure error // the last attempt's; nil once a server has answered
	fault   error // why the last connection was given up, if for what the server sent
}

func newDialer(cfg *config) *dialer {
	h := &hosts{servers: cfg.servers}
	if cfg.dial == nil {
		h.lookup = net.DefaultResolver.LookupHost
	}
	return &dialer{cfg: cfg, hosts: h, tick: tick{told: cfg.tick}, wait: cfg.retry()}
}

// dial connects to the next server: at once after a connection that was of use,
// and with growing waits after others. It returns when connected, failed, after
// WithConnectTimeout, before which the names may take as long, or when ctx ends.
func (d *dialer) dial(ctx context.Context, stake func() time.Duration) (net.Conn, target, error) {
	if err := pause(ctx, d.nextWait()); err != nil {
		return nil, target{}, err
	}
	return d.dialNow(ctx)
}

func (d *dialer) handshakeLimit(stake func() time.Duration) time.Duration { return d.cfg.timeout }

// dialNow makes one attempt at the next server.
func (d *dialer) dialNow(ctx context.Context) (net.Conn, target, error) {
	t, err := d.nextHost(ctx)
	if err != nil {
		d.setFailure(err)
		return nil, target{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.connectTimeout)
	defer cancel()
	c, err := d.connect(ctx, t)
	if err != nil {
		err = fmt.Errorf("connect to %s: %w", t.addr, err)
		d.setFailure(err)
		return nil, t, err
	}
	return &unheard{Conn: c, addr: t.addr, tell: d.setFailure}, t, nil
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

// nextHost has a time of its own: a name that nobody answers for uses all of it up, and
// leaves none to dial those servers that are known.
func (d *dialer) nextHost(ctx context.Context) (target, error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.connectTimeout)
	defer cancel()
	return d.hosts.next(ctx)
}

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
	if cfg.ServerName == "" && !cfg.InsecureSkipVerify {
		cfg = cfg.Clone()
		cfg.ServerName = t.host
	}
	secure := tls.Client(c, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return secure, nil
}

// nextWait returns how long to wait before the next dial.
func (d *dialer) nextWait() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.useful.Swap(false) {
		d.fault = nil
		d.started = false
	}
	if !d.started {
		d.wait.Reset()
		d.started = true
		return 0
	}
	return untiring(d.wait)
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

// provider is the HostProvider given to zk.Conn. The choice of server is the
// dialer's. zk.Conn answers retryStart with a fixed wait of a second without
// jitter, and by failing what is queued, so it is said only once the session has
// ended: there alone does the dial loop of zk.Conn look whether it was closed.
type provider struct{ ended func() bool }

var _ zk.HostProvider = provider{}

func (p provider) Init([]string) error  { return nil }
func (p provider) Len() int             { return 1 }
func (p provider) Connected()           {}
func (p provider) Next() (string, bool) { return "zookeeper", p.ended() }
