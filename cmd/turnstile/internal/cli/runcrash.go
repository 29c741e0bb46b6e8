package cli

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/supervise"
	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/visit"
	"github.com/turnstile-go/turnstile/session"
)

// If turnstile is killed, its guard closes the session when the command and its descendants are dead. So the next contender
// need not wait until the session times out. For that, the guard knows the servers and the identities before turnstile
// connects, and each session before turnstile uses it.

// access is how to reach the servers.
type access struct {
	Servers    []string
	Identities []visit.Identity // that of SASL too
	TLS        tlsFlags
}

// dialer makes the connections of run, and of its guard.
type dialer struct {
	tls    *tls.Config // nil: plain TCP
	lookup func(ctx context.Context, host string) ([]string, error)
	turn   atomic.Uint32 // of the addresses of a name
}

func newDialer(cfg *tls.Config) *dialer {
	d := &dialer{tls: cfg, lookup: net.DefaultResolver.LookupHost}
	d.turn.Store(rand.Uint32())
	return d
}

// guarded returns Connect with a guard that knows each session.
func (a *App) guarded(guard *supervise.Guard) (connector, error) {
	opts, err := a.plainOptions() // the dialer speaks TLS, so that it can read the greeting
	if err != nil {
		return nil, err
	}
	dial, err := a.guardSession(guard)
	if err != nil {
		return nil, err
	}
	opts = append(opts, session.WithDialer(dial))
	return func(ctx context.Context, more ...session.Option) (*session.Manager, error) {
		return a.connect(ctx, append(slices.Clip(opts), more...)...)
	}, nil
}

// guardSession tells the guard how to reach the servers. It returns a dialer that tells the guard of each session.
func (a *App) guardSession(guard *supervise.Guard) (func(ctx context.Context, network, addr string) (net.Conn, error), error) {
	c := &a.connection
	identities, err := c.identities()
	if err != nil {
		return nil, err
	}
	cfg, err := c.tls.config()
	if err != nil {
		return nil, err
	}
	var how access
	how.Servers, _ = ensemble.Split(c.connectString())
	for _, i := range identities {
		how.Identities = append(how.Identities, visit.Identity{Scheme: i.scheme, Credential: i.credential})
	}
	how.TLS = c.tls
	data, err := json.Marshal(how)
	if err != nil {
		return nil, err
	}
	guard.Access(data)
	d, n := newDialer(cfg), &notes{note: guard.Note}
	return func(ctx context.Context, _, addr string) (net.Conn, error) {
		conn, err := d.dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		return &greetedConn{Conn: conn, server: addr, notes: n}, nil
	}, nil
}

// dial connects to a server. If its name has several addresses, dial takes another one each time. A net.Dialer would stay
// with the first that accepts a connection, even if the server there serves nobody.
func (d *dialer) dial(ctx context.Context, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	all, err := d.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	at := all[int(d.turn.Add(1)%uint32(len(all)))]
	c, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(at, port))
	if err != nil || d.tls == nil {
		return c, err
	}
	cfg := d.tls.Clone()
	if cfg.ServerName == "" {
		cfg.ServerName = host
	}
	secure := tls.Client(c, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return secure, nil
}

// notes tell the guard of turnstile's session.
type notes struct {
	note func(supervise.Session)

	mu      sync.Mutex
	present int64 // the session that was noted last
}

// take notes a session that a server has greeted. asked is the session of the handshake, and 0 for a new one. A handshake that
// asks for a session before the present one is made to close it.
func (n *notes) take(asked int64, s supervise.Session) {
	n.mu.Lock()
	ours := asked == 0 || asked == n.present
	if ours {
		n.present = s.ID
	}
	n.mu.Unlock()
	if ours {
		n.note(s)
	}
}

// greetedConn is a connection that notes the session of the server's greeting before its reader has all of the greeting. So
// no request of the session can be on its way before the guard knows the session.
type greetedConn struct {
	net.Conn
	server string
	notes  *notes
	head   []byte // what has come of the greeting
	known  bool

	begun, probe atomic.Bool  // of the handshake: it was sent, and is not that of turnstile's session
	asked        atomic.Int64 // the session of the handshake
}

// A handshake has the length of the frame, the version of the protocol and a transaction before the timeout that the client
// asks for, and the session. A session of 1 ms is one that package session opens and closes to learn the tick of the servers.
const (
	helloTimeout = 4 + 4 + 8
	helloSession = helloTimeout + 4
	probeTimeout = 1
)

// NetConn returns the connection below. Package session looks there for that of TCP.
func (c *greetedConn) NetConn() net.Conn { return c.Conn }

func (c *greetedConn) Write(p []byte) (int, error) {
	if !c.begun.Swap(true) && len(p) >= helloSession+8 {
		c.probe.Store(binary.BigEndian.Uint32(p[helloTimeout:]) == probeTimeout)
		c.asked.Store(int64(binary.BigEndian.Uint64(p[helloSession:])))
	}
	return c.Conn.Write(p)
}

// greetingLength is that of a greeting up to its password, with the length of the frame.
const greetingLength = 4 + visit.GreetingLength

func (c *greetedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.known {
		return n, err
	}
	c.head = append(c.head, p[:n]...)
	if len(c.head) < greetingLength {
		return n, err
	}
	s := supervise.Session{
		ID:       int64(binary.BigEndian.Uint64(c.head[12:])),
		Password: slices.Clone(c.head[24:greetingLength]),
		Timeout:  time.Duration(binary.BigEndian.Uint32(c.head[8:])) * time.Millisecond,
		Server:   c.server,
	}
	if s.ID != 0 && !c.probe.Load() { // 0: the session that was asked for has expired
		c.notes.take(c.asked.Load(), s)
	}
	c.known, c.head = true, nil
	return n, err
}

// prepareClose is the part of a guard that knows ZooKeeper.
func prepareClose(data []byte) supervise.Closer {
	var how access
	if json.Unmarshal(data, &how) != nil {
		return nil
	}
	cfg, err := how.TLS.config()
	if err != nil {
		return nil // turnstile fails for the same reason
	}
	return func(ctx context.Context, s supervise.Session) { how.close(ctx, newDialer(cfg), s) }
}

// Bounds of one try to close a session, and of the pause after a round of tries, which grows.
const (
	closeTry   = 2 * time.Second
	firstPause = 50 * time.Millisecond
	mostPause  = time.Second
)

// close closes a session on the first server that answers. It begins with the one that the session was connected to.
func (how access) close(ctx context.Context, d *dialer, s supervise.Session) {
	v := visit.Visit{Hello: visit.Hello{Timeout: s.Timeout, Session: s.ID, Password: s.Password}}
	v.Identities, v.SASL = splitSASL(how.Identities)
	servers := append([]string{s.Server}, how.Servers...)
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, mostPause) {
		for _, server := range servers {
			out := d.visit(ctx, server, v)
			if out.Gone {
				return
			}
			if out.Refused {
				v.Identities, v.SASL = nil, nil
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// visit makes one try.
func (d *dialer) visit(ctx context.Context, server string, v visit.Visit) visit.Outcome {
	ctx, cancel := context.WithTimeout(ctx, closeTry)
	defer cancel()
	c, err := d.dial(ctx, server)
	if err != nil {
		return visit.Outcome{}
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	return v.Run(c)
}
