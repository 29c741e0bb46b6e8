package setups

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	tick = 200 * time.Millisecond
	// timeout is how long sessions live. Servers that start on a busy machine may take a while.
	timeout = time.Minute
)

// site is an ensemble and what its clients have seen.
type site struct {
	*zktest.Ensemble
	tls *tls.Config // of its clients, or nil

	mu     sync.Mutex
	broken []error // by which connections ended
}

func start(t *testing.T, c setup) *site {
	t.Helper()
	options := append([]zktest.RealOption{
		zktest.Servers(voters), zktest.TickTime(tick), zktest.MaxSessionTimeout(timeout),
	}, c.options...)
	s := &site{Ensemble: zktest.StartReal(t, options...), tls: c.tls}
	t.Cleanup(func() { s.check(t) }) // runs after the clients are closed, and before the servers are
	return s
}

// check fails the test if an answer was malformed, such as one with bytes left over. A connection ends with
// it.
func (s *site) check(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, err := range s.broken {
		if errors.Is(err, codec.ErrBadFrame) {
			t.Error(err)
		}
	}
	t.Logf("%d connections of sessions ended, none with a malformed answer", len(s.broken))
}

// addr is where clients reach a server.
func (s *site) addr(i int) string {
	if s.tls != nil {
		return s.SecureAddr(i)
	}
	return s.Addr(i)
}

// connect returns a client that knows these servers, or all.
func (s *site) connect(t *testing.T, servers []int, opts ...session.Option) *session.Manager {
	t.Helper()
	var addrs []string
	for i := range s.Len() {
		if len(servers) == 0 {
			addrs = append(addrs, s.addr(i))
		}
	}
	for _, i := range servers {
		addrs = append(addrs, s.addr(i))
	}
	if s.tls != nil {
		opts = append(opts, session.WithTLS(s.tls))
	}
	m := testserver.Connect(t, strings.Join(addrs, ","), append(opts, session.WithTimeout(timeout))...)
	m.Subscribe(func(c session.Change) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if c.To == session.Suspended || c.To == session.Lost {
			s.broken = append(s.broken, c.Err)
		}
	})
	return m
}

// road is a way to one server at a time. It is the dialer of one client.
type road struct {
	mu     sync.Mutex
	target string
	conns  []net.Conn
}

func (r *road) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	r.mu.Lock()
	target := r.target
	r.mu.Unlock()
	conn, err := new(net.Dialer).DialContext(ctx, network, target)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.target != target {
		_ = conn.Close()
		return nil, errors.New("the road has turned meanwhile")
	}
	r.conns = append(r.conns, conn)
	return conn, nil
}

// turn cuts all connections. Later ones lead to another server.
func (r *road) turn(target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
	for _, conn := range r.conns {
		_ = conn.Close()
	}
	r.conns = nil
}

func TestMain(m *testing.M) { testserver.Main(m) }
