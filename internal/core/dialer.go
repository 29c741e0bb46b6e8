package core

import (
	"github.com/turnstile-go/turnstile/internal/dial"
	"github.com/turnstile-go/turnstile/internal/logbook"
)

// dialer is what a manager has of its servers, and outlives sessions: how to reach them, and what it has learned of
// them.
type dialer struct {
	*dial.Dialer

	cfg        *Config
	tick       tick
	containers *containers
}

func newDialer(cfg *Config) *dialer {
	return &dialer{
		Dialer: dial.New(dial.Config{
			Servers: cfg.servers, Dial: cfg.Dial, Lookup: cfg.lookup, TLS: cfg.TLS, ConnectTimeout: cfg.ConnectTimeout,
			Timeout: cfg.Timeout, Retry: cfg.Retry, Log: cfg.Log,
			Terms: logbook.Terms{Timeout: cfg.Timeout, Margin: cfg.Margin},
		}),
		cfg: cfg, tick: tick{told: cfg.Tick}, containers: newContainers(),
	}
}
