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
	Servers    string
	Identities []identity
	TLS        tlsFlags
}

// guarded tells the guard how to reach the servers. It returns options of sessions that the guard hears of.
func (a *App) guarded(guard *supervise.Guard) ([]session.Option, error) {
	opts, cfg, err := a.options()
	if err != nil {
		return nil, err
	}
	identities, err := a.connection.identities()
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(access{a.connection.servers, identities, a.connection.tls})
	if err != nil {
		return nil, err
	}
	guard.Access(data)
	d, n := newDialer(cfg), &notes{note: guard.Note}
	return append(opts, session.WithDialer(func(ctx context.Context, _, addr string) (net.Conn, error) {
		conn, err := d.dial(ctx, addr) // the dialer speaks TLS, so that it can read the greeting
		if err != nil {
			return nil, err
		}
		return &greetedConn{Conn: conn, server: addr, notes: n}, nil
	})), nil
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
	return ensemble.Target{Name: addr, Address: net.JoinHostPort(at, port)}.Dial(ctx, d.tls)
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

// NetConn returns the connection below. Package session looks there for that of TCP.
func (c *greetedConn) NetConn() net.Conn { return c.Conn }

func (c *greetedConn) Write(p []byte) (int, error) {
	// A handshake has the length of the frame, the version of the protocol and a transaction before the timeout that the client
	// asks for, and the session. A session of 1 ms is one that package session opens and closes to learn the tick of the servers.
	const timeout, id, probeTimeout = 4 + 4 + 8, 4 + 4 + 8 + 4, 1
	if !c.begun.Swap(true) && len(p) >= id+8 {
		c.probe.Store(binary.BigEndian.Uint32(p[timeout:]) == probeTimeout)
		c.asked.Store(int64(binary.BigEndian.Uint64(p[id:])))
	}
	return c.Conn.Write(p)
}

func (c *greetedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.known {
		return n, err
	}
	const length = 4 + visit.GreetingLength // with the length of the frame
	c.head = append(c.head, p[:n]...)
	if len(c.head) < length {
		return n, err
	}
	s := supervise.Session{
		ID:       int64(binary.BigEndian.Uint64(c.head[12:])),
		Password: slices.Clone(c.head[24:length]),
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

// close closes a session on the first server that answers. It begins with the one that the session was connected to. Some
// servers refuse all requests without an identity, and some those with one that they do not know, so each is tried both ways.
func (how access) close(ctx context.Context, d *dialer, s supervise.Session) {
	const try, firstPause, mostPause = 2 * time.Second, 50 * time.Millisecond, time.Second
	var identities []visit.Identity
	for _, i := range how.Identities {
		if i.Scheme != "sasl" { // a server that insists on SASL frees the lock when the session times out
			identities = append(identities, visit.Identity(i))
		}
	}
	servers, _ := ensemble.Split(how.Servers)
	servers = append([]string{s.Server}, servers...)
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, mostPause) {
		for _, server := range servers {
			for _, by := range [][]visit.Identity{identities, nil} {
				limited, cancel := context.WithTimeout(ctx, try)
				c, err := d.dial(limited, server)
				if err != nil {
					cancel()
					break
				}
				stop := context.AfterFunc(limited, func() { _ = c.Close() })
				out, _ := visit.Close(c, visit.Hello{Timeout: s.Timeout, Session: s.ID, Password: s.Password}, by...)
				stop()
				cancel()
				_ = c.Close()
				if out.Gone {
					return
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
