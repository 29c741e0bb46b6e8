package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	sessionTimeout = 2 * time.Second
	patience       = 2 * time.Minute // for what needs but a moment, on a machine that may be busy
)

// client is one manager, what its workers lock with, and the proxy through which it reaches
// the server.
type client struct {
	name  string
	proxy *zktest.Proxy // nil: straight to the server
	m     *session.Manager
	locks *locks
}

// newClient connects a client, the life-th of its number.
func newClient(server string, number, life int) (*client, error) {
	proxy, err := zktest.NewProxy(server)
	if err != nil {
		return nil, err
	}
	var opts []session.Option
	if number == 0 { // one with Curator's stricter policy
		opts = append(opts, session.WithLossOnSuspend())
	}
	c, err := connect(fmt.Sprintf("client %d.%d", number, life), proxy.Addr(), opts...)
	if err != nil {
		return nil, errors.Join(err, proxy.Close())
	}
	c.proxy = proxy
	return c, nil
}

func connect(name, server string, opts ...session.Option) (*client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m, err := session.Connect(ctx, server, append(opts,
		session.WithTimeout(sessionTimeout), session.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		return nil, err
	}
	l, err := newLocks(m)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return &client{name: name, m: m, locks: l}, nil
}

// close ends the client. That the server could not be told is no error here: the session
// then expires, and settling waits for that.
func (c *client) close() error {
	_ = c.m.Close()
	if c.proxy == nil {
		return nil
	}
	return c.proxy.Close()
}

// closed reports whether the manager was closed.
func (c *client) closed() bool { return c.m.State() == session.Closed }
