package core

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/room"
)

func newFakeConfig(t *testing.T, opts ...Option) *Config {
	t.Helper()
	quiet := WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	cfg, err := newConfig("h1:1", append([]Option{quiet}, opts...))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// bareSession is a session that makes no connection. Its watchdog does not run.
func bareSession(t *testing.T, cfg *Config) *Session {
	t.Helper()
	s := &Session{
		cfg:    cfg,
		dialer: newDialer(cfg),
		clock:  clock.New(clock.Now()),
		report: func(*Session, hooks.State, error) {},
		marked: make(chan struct{}),
		link:   link{up: make(chan struct{})},
	}
	s.life, s.endLife = context.WithCancelCause(context.Background())
	t.Cleanup(func() { s.endLife(nil) })
	s.room = room.New(s.life, room.Size{Nodes: cfg.MaxNodes, Bytes: cfg.MaxNodeBytes})
	s.watchdog.init()
	return s
}
