package core

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/dial"
	"github.com/turnstile-go/turnstile/internal/logbook"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/wire"
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
			Servers: cfg.servers, Resolve: cfg.Resolve, Dial: cfg.Dial, Lookup: cfg.lookup, TLS: cfg.TLS, ConnectTimeout: cfg.ConnectTimeout,
			Timeout: cfg.Timeout, Retry: cfg.Retry, Log: cfg.Log,
			Terms: logbook.Terms{Timeout: cfg.Timeout, Margin: cfg.Margin},
		}),
		cfg: cfg, tick: tick{told: cfg.Tick}, containers: newContainers(),
	}
}

// tick is what a manager knows of the servers' tick.
type tick struct {
	told     time.Duration // the value of WithTickTime, or 0
	shortest atomic.Int64  // the shortest session timeout that a server grants, or 0 if not known yet
}

// shortestHalf is the shortest half tick that is learned: half of ZooKeeper's default tick. An
// operator may have set minSessionTimeout below two ticks. WithTickTime can set a shorter one.
const shortestHalf = time.Second

// half returns half a tick, or more, for a session with the given timeout.
func (t *tick) half(timeout time.Duration) time.Duration {
	if t.told > 0 {
		return t.told / 2
	}
	if m := time.Duration(t.shortest.Load()); m > 0 {
		return min(timeout/4, max(m/4, shortestHalf))
	}
	return timeout / 4
}

// learnTick asks for a session timeout of 1 ms. Servers raise that to their minSessionTimeout,
// which is two ticks by default. It tries until a server has answered or ctx ends.
func (d *dialer) learnTick(ctx context.Context) {
	if d.tick.told > 0 {
		return
	}
	wait := d.cfg.Retry()
	for ctx.Err() == nil {
		out := d.visit(ctx, codec.Hello{TimeoutMillis: 1}, true)
		if out.Greeting.TimeoutMillis > 0 {
			d.tick.shortest.Store(int64(out.Greeting.Timeout()))
			return
		}
		_ = rounds.Pause(ctx, rounds.Untiring(wait))
	}
}

// visit makes a connection for one visit, with the identities of the user or without them. It bounds the time for
// one server, so that a server that hangs leaves time for another.
func (d *dialer) visit(ctx context.Context, hello codec.Hello, identify bool) (out wire.Outcome) {
	c, to, err := d.DialNow(ctx)
	if err != nil {
		return out
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout/3)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	v := wire.Visit{Hello: hello}
	if identify {
		v.Identities, v.SASL, v.Limit = d.cfg.Auths, d.cfg.sasl(ctx, to.Host), d.cfg.Timeout/6
	}
	return v.Run(c)
}
