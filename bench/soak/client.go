package main

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/listing"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/referee"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	sessionTimeout = 2 * time.Second
	patience       = 2 * time.Minute // for what needs but a moment, on a machine that may be busy
)

// client is one manager, the lock objects of its workers, and the proxy through which it reaches the
// server.
type client struct {
	name  string
	proxy atomic.Pointer[zktest.Proxy] // none: straight to the server
	m     *session.Manager
	locks *locks
	user  bool // it logs in as the user of closedNode
}

// newClient connects a client through a proxy. Its manager finds the proxy by a dialer, or by a resolver that draws
// what it answers.
func newClient(server, name string, resolver *rand.Rand, opts ...session.Option) (*client, error) {
	c := &client{name: name}
	if err := c.renewProxy(server); err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, c.proxy.Load().Addr())
	}
	at, way := server, session.WithDialer(dial)
	if resolver != nil {
		at, way = "", session.WithResolver(c.resolver(resolver))
	}
	if err := c.connect(at, append(opts, way)...); err != nil {
		return nil, errors.Join(err, c.proxy.Load().Close())
	}
	return c, nil
}

// resolver returns a resolver that names the proxy, which is another one in each cycle. Some of its answers fail, are
// late, name nobody, or name a server first that does not exist.
func (c *client) resolver(rng *rand.Rand) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		switch rng.IntN(6) {
		case 0:
			return nil, errors.New("no answer")
		case 1:
			return nil, nil
		case 2:
			return []string{"127.0.0.1:1", c.proxy.Load().Addr()}, nil
		case 3:
			wait(ctx, upTo(rng, sessionTimeout/2))
		}
		return []string{c.proxy.Load().Addr()}, nil
	}
}

// renewProxy replaces the proxy. A proxy remembers all requests and sessions, which would look like a
// leak in a long run.
func (c *client) renewProxy(server string) error {
	proxy, err := zktest.NewProxy(server)
	if err != nil {
		return err
	}
	if old := c.proxy.Swap(proxy); old != nil {
		return old.Close()
	}
	return nil
}

// connected reports whether the manager has a session, and the proxy knows it.
func (c *client) connected() bool {
	return c.m.State() == session.Connected && len(c.proxy.Load().Sessions()) > 0
}

func (c *client) connect(server string, opts ...session.Option) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m, err := session.Connect(ctx, server, append(opts,
		session.WithTimeout(sessionTimeout), session.WithLogger(slog.New(slog.DiscardHandler)),
		session.WithTrace(listing.Hooks(referee.Now)))...)
	if err != nil {
		return err
	}
	l, err := newLocks(m)
	if err == nil {
		err = ask(ctx, m) // when that is answered all goroutines of a manager run
	}
	if err != nil {
		return errors.Join(err, m.Close())
	}
	c.m, c.locks = m, l
	return nil
}

func ask(ctx context.Context, m *session.Manager) error {
	s, err := m.Session(ctx)
	if err == nil {
		_, err = s.Exists(ctx, "/")
	}
	return err
}

// close ends the client. It is no error here if the server could not be told: the session then
// expires, and settle waits for that.
func (c *client) close() error {
	_ = c.m.Close()
	if proxy := c.proxy.Load(); proxy != nil {
		return proxy.Close()
	}
	return nil
}
