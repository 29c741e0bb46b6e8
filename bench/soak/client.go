package main

import (
	"context"
	"errors"
	"log/slog"
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
}

// newClient connects a client through a proxy.
func newClient(server, name string, opts ...session.Option) (*client, error) {
	c := &client{name: name}
	if err := c.renewProxy(server); err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, c.proxy.Load().Addr())
	}
	if err := c.connect(server, append(opts, session.WithDialer(dial))...); err != nil {
		return nil, errors.Join(err, c.proxy.Load().Close())
	}
	return c, nil
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
