package core

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/codec"
)

// Option is an option of package session, for the tests of this one.
type Option func(*Config)

func WithTimeout(d time.Duration) Option        { return func(c *Config) { c.Timeout = d } }
func WithTickTime(d time.Duration) Option       { return func(c *Config) { c.Tick = d } }
func WithMargin(d time.Duration) Option         { return func(c *Config) { c.Margin = d } }
func WithConnectTimeout(d time.Duration) Option { return func(c *Config) { c.ConnectTimeout = d } }
func WithLogger(log *slog.Logger) Option        { return func(c *Config) { c.Log = log } }
func WithTLS(t *tls.Config) Option              { return func(c *Config) { c.TLS = t } }
func WithName(name string) Option               { return func(c *Config) { c.Name = name } }
func WithLossOnSuspend() Option                 { return func(c *Config) { c.LossOnSuspend = true } }
func WithTrace(t hooks.Trace) Option            { return func(c *Config) { c.AddTrace(t) } }
func WithMaxNodes(n int) Option                 { return func(c *Config) { c.MaxNodes = n } }
func WithACL(acl ...zk.ACL) Option              { return func(c *Config) { c.SetACL(acl) } }

func WithRetry(newBackOff func() backoff.BackOff) Option {
	return func(c *Config) { c.Retry = newBackOff }
}

func WithAuth(scheme string, credential []byte) Option {
	return func(c *Config) { c.Auths = append(c.Auths, codec.Identity{Scheme: scheme, Credential: credential}) }
}

func WithDialer(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	return func(c *Config) { c.Dial = dial }
}

func newConfig(servers string, opts []Option) (*Config, error) {
	c, err := NewConfig(servers)
	for _, o := range opts {
		o(c)
	}
	return c, errors.Join(err, c.Finish())
}

func open(servers string, opts ...Option) (*Manager, error) {
	c, err := newConfig(servers, opts)
	if err != nil {
		return nil, err
	}
	return Start(c), nil
}

func connect(ctx context.Context, servers string, opts ...Option) (*Manager, error) {
	c, err := newConfig(servers, opts)
	if err != nil {
		return nil, err
	}
	return Connect(ctx, servers, c)
}
