package dial

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/turnstile-go/turnstile/internal/logbook"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/fakedns"
)

// pipes is a dialer whose connections know whether they were closed.
type pipes struct {
	mu     sync.Mutex
	dialed []string
	slow   map[string]time.Duration // by address
	errs   map[string]error
	made   []*pipe
	most   int // dials under way at once
	now    int
}

type pipe struct {
	net.Conn
	far    net.Conn
	closed atomic.Bool
}

func (p *pipe) Close() error {
	p.closed.Store(true)
	p.far.Close()
	return p.Conn.Close()
}

func (p *pipes) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	p.mu.Lock()
	p.dialed = append(p.dialed, addr)
	p.now++
	p.most = max(p.most, p.now)
	slow, err := p.slow[addr], p.errs[addr]
	p.mu.Unlock()
	defer func() { p.mu.Lock(); p.now--; p.mu.Unlock() }()
	if err := rounds.Pause(ctx, slow); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	c := &pipe{Conn: near, far: far}
	p.mu.Lock()
	p.made = append(p.made, c)
	p.mu.Unlock()
	return c, nil
}

// open returns how many connections are open.
func (p *pipes) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, c := range p.made {
		if !c.closed.Load() {
			n++
		}
	}
	return n
}

// dialerOf returns a dialer for servers such as "h1:1,h2:1". change may be nil.
func dialerOf(t *testing.T, p *pipes, servers string, change func(*Config)) *Dialer {
	t.Helper()
	d := New(configOf(t, p.dial, servers, change))
	t.Cleanup(func() {
		for _, c := range p.made {
			c.Close()
		}
		d.Close(context.Background())
	})
	return d
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

func configOf(t *testing.T, dial dialFunc, servers string, change func(*Config)) Config {
	t.Helper()
	cfg := Config{
		Dial: dial, Timeout: 10 * time.Second, ConnectTimeout: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
		Retry: func() backoff.BackOff {
			return &backoff.ExponentialBackOff{
				InitialInterval: 25 * time.Millisecond, MaxInterval: 2500 * time.Millisecond, Multiplier: 2, RandomizationFactor: 1,
			}
		},
	}
	for _, s := range strings.Split(servers, ",") {
		host, port, err := net.SplitHostPort(s)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Servers = append(cfg.Servers, Server{host, port})
	}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

func staking(left time.Duration) Remaining { return func() time.Duration { return left } }

// A dialer of the user gets the names unresolved.
func TestDialerNoLookupWithDialer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("not today")
		p := &pipes{errs: map[string]error{"h1:1": why}}
		d := dialerOf(t, p, "h1:1", nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, _, err := d.Dial(ctx, staking(0)); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(d.LastFailure(), why) {
			t.Errorf("got %v, last failure %v", err, d.LastFailure())
		}
		if p.dialed[0] != "h1:1" {
			t.Errorf("dialled %v", p.dialed)
		}
	})
}

// steps waits 1 s, 2 s, 3 s … and then says stop.
type steps struct{ n, stop int }

func (s *steps) Reset() { s.n = 0 }
func (s *steps) NextBackOff() time.Duration {
	if s.n++; s.n > s.stop {
		return backoff.Stop
	}
	return time.Duration(s.n) * time.Second
}

// The first dial is made at once. Waits grow until a connection was of use. A policy that says
// stop begins again.
func TestDialerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dialerOf(t, &pipes{}, "h1:1", func(c *Config) {
			c.Retry = func() backoff.BackOff { return &steps{stop: 3} }
		})
		for i, c := range []struct {
			answered time.Duration // after the greeting
			want     time.Duration
		}{
			{0, 0}, {0, 1}, {usefulAfter - 1, 2}, {0, 3}, {0, 1}, // 1: it had said stop
			{usefulAfter, 0}, {0, 1}, {time.Hour, 0}, {time.Hour, 0}, {0, 1}, {0, 2},
		} {
			d.Answered(c.answered)
			start := time.Now()
			if _, _, err := d.Dial(t.Context(), staking(0)); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != c.want*time.Second {
				t.Errorf("dial %d after %v, want %v", i, got, c.want*time.Second)
			}
		}
	})
	if got := rounds.Untiring(&steps{}); got <= 0 {
		t.Errorf("a policy that knows only stop: %v", got)
	}
}

// While a session is at stake, waits are below a second and below an eighth of what remains.
func TestHurried(t *testing.T) {
	for _, c := range []struct{ wait, stake, least, most time.Duration }{
		{time.Minute, 0, time.Minute, time.Minute},
		{time.Minute, -time.Second, time.Minute, time.Minute},
		{time.Millisecond, time.Second, time.Millisecond, time.Millisecond},
		{0, time.Second, 0, 0},
		{time.Minute, time.Hour, 500 * time.Millisecond, time.Second},
		{time.Minute, 8 * time.Second, 500 * time.Millisecond, time.Second},
		{time.Minute, 4 * time.Second, 250 * time.Millisecond, 500 * time.Millisecond},
		{time.Second / 2, 4 * time.Second, 250 * time.Millisecond, 500 * time.Millisecond},
		{time.Minute, time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond}, // not a tight loop
	} {
		for range 100 {
			if got := hurried(c.wait, c.stake); got < c.least || got > c.most || c.least != c.most && got == c.most {
				t.Fatalf("a wait of %v with %v at stake: %v, want from %v to %v", c.wait, c.stake, got, c.least, c.most)
			}
		}
	}
}

// The limits of a dial and a greeting, for a session that asked for 60 s.
func TestDialerLimits(t *testing.T) {
	d := dialerOf(t, &pipes{}, "h1:1", func(c *Config) { c.Timeout, c.ConnectTimeout = time.Minute, 5*time.Second })
	for _, c := range []struct{ stake, dial, greeting time.Duration }{
		{0, 5 * time.Second, time.Minute},
		{-1, 5 * time.Second, time.Minute},
		{54 * time.Second, 5 * time.Second, 27 * time.Second},
		{6 * time.Second, 3 * time.Second, 3 * time.Second},
	} {
		if got := d.dialLimit(staking(c.stake)); got != c.dial {
			t.Errorf("%v at stake: a dial of %v, want %v", c.stake, got, c.dial)
		}
		if got := d.HandshakeLimit(staking(c.stake)); got != c.greeting {
			t.Errorf("%v at stake: a greeting within %v, want %v", c.stake, got, c.greeting)
		}
	}
}

// The server that a dial finds, how long it takes, and how many dials it leaves running.
func TestDialerRaces(t *testing.T) {
	refused := errors.New("connection refused")
	for _, c := range []struct {
		name    string
		servers string
		slow    map[string]time.Duration
		errs    map[string]error
		stake   time.Duration
		want    string // "": any
		most    time.Duration
		atOnce  int
	}{
		{name: "one", servers: "a:1", want: "a:1", most: 0, atOnce: 1},
		{
			name: "one of two dark", servers: "dark:1,a:1", slow: map[string]time.Duration{"dark:1": forever},
			stake: 5 * time.Second, want: "a:1", most: 5 * time.Second / 8, atOnce: 2,
		},
		{
			name: "one of two dark, nothing at stake", servers: "dark:1,a:1", slow: map[string]time.Duration{"dark:1": forever},
			want: "a:1", most: time.Second, atOnce: 2,
		},
		{
			name: "two of five dark, one refuses", servers: "d1:1,d2:1,r:1,a:1,b:1",
			slow: map[string]time.Duration{"d1:1": forever, "d2:1": forever}, errs: map[string]error{"r:1": refused},
			stake: 8 * time.Second, most: 3 * time.Second, atOnce: 3,
		},
		{
			name: "a slow network", servers: "a:1,b:1",
			slow:  map[string]time.Duration{"a:1": 4 * time.Second, "b:1": 4 * time.Second},
			stake: 9 * time.Second, most: 4 * time.Second, atOnce: mostDials,
		},
		{
			name: "a slow server wins all the same", servers: "a:1,dark:1",
			slow:  map[string]time.Duration{"a:1": 3 * time.Second, "dark:1": forever},
			stake: 9 * time.Second, want: "a:1", most: 4 * time.Second, atOnce: mostDials,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 20 { // the order is a matter of chance
				synctest.Test(t, func(t *testing.T) {
					p := &pipes{slow: c.slow, errs: c.errs}
					d := dialerOf(t, p, c.servers, nil)
					start := time.Now()
					conn, to, err := d.Dial(t.Context(), staking(c.stake))
					if err != nil {
						t.Fatal(err)
					}
					if took := time.Since(start); took > c.most || c.want != "" && to.Addr != c.want {
						t.Errorf("%s after %v, want %s within %v", to.Addr, took, c.want, c.most)
					}
					synctest.Wait()
					if p.most > c.atOnce || p.now != 0 || p.open() != 1 {
						t.Errorf("%d dials at once, %d still under way, %d connections", p.most, p.now, p.open())
					}
					if d.hosts.last != to {
						t.Errorf("connected to %s, and %s is taken for the last", to.Addr, d.hosts.last.Addr)
					}
					conn.Close()
				})
			}
		})
	}
}

// If no server answers, they are dialled again and again, a few at a time.
func TestDialerAllDark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{slow: map[string]time.Duration{"a:1": forever, "b:1": forever}}
		d := dialerOf(t, p, "a:1,b:1", nil)
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		start := time.Now()
		left := func() time.Duration { return 9*time.Second - time.Since(start) }
		if _, _, err := d.Dial(ctx, left); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		synctest.Wait()
		if p.most != mostDials || p.now != 0 || len(p.dialed) < 8 {
			t.Errorf("%d dials at once, %d still under way, of %d", p.most, p.now, len(p.dialed))
		}
		if why := d.LastFailure(); why == nil || !strings.Contains(why.Error(), "dial ") {
			t.Errorf("%v does not say why", why)
		}
	})
}

// If two connections come at the same moment, one is kept.
func TestDialerClosesLosers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{slow: map[string]time.Duration{"a:1": 3 * time.Second, "b:1": 2 * time.Second}}
		d := dialerOf(t, p, "a:1,b:1", nil)
		d.hosts.won(logbook.Target{Addr: "b:1", Host: "b"}) // a is dialled first, b a second later
		if _, _, err := d.Dial(t.Context(), staking(0)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(p.made) != 2 || p.open() != 1 {
			t.Errorf("%d connections made, %d open", len(p.made), p.open())
		}
	})
}

// A name whose lookup hangs does not delay the dial of a server with a known address, in this
// round or the next.
func TestDialerSlowName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dialerOf(t, &pipes{}, "h1:1", nil)
		dns := &fakedns.Resolver{Slow: map[string]time.Duration{"slow": forever}}
		d.hosts = hostsOf(t, dns, Server{"slow", "1"}, Server{"10.0.0.9", "1"})
		for i := range 3 {
			start := time.Now()
			_, to, err := d.DialNow(t.Context())
			if err != nil || to.Addr != "10.0.0.9:1" || time.Since(start) > resolutionDelay || i > 0 && time.Since(start) > 0 {
				t.Errorf("dial %d: %q, %v after %v", i, to.Addr, err, time.Since(start))
			}
		}
	})
}

// All servers behind one name get new addresses, and the resolver returns them a while later.
func TestDialerNewAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{slow: map[string]time.Duration{"10.0.0.1:1": forever, "10.0.0.2:1": forever, "10.0.0.3:1": forever}}
		d := dialerOf(t, p, "h1:1", nil)
		dns := &fakedns.Resolver{Names: map[string][]string{"zk": {"10.0.0.1", "10.0.0.2", "10.0.0.3"}}}
		d.hosts = hostsOf(t, dns, Server{"zk", "1"})
		d.hosts.won(logbook.Target{Addr: "10.0.0.1:1", Host: "zk"})
		nextAddr(t, d.hosts)
		d.Answered(time.Hour)
		time.Sleep(time.Hour)
		start := time.Now()
		const later = 2 * time.Second
		time.AfterFunc(later, func() { dns.Set(map[string][]string{"zk": {"10.0.1.1", "10.0.1.2"}}, nil) })
		left := func() time.Duration { return 9*time.Second - time.Since(start) }
		_, to, err := d.Dial(t.Context(), left)
		if took := time.Since(start); err != nil || !strings.HasPrefix(to.Addr, "10.0.1.") || took > later+time.Second {
			t.Errorf("%s, %v after %v", to.Addr, err, took)
		}
	})
}

func TestDialerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{slow: map[string]time.Duration{"h1:1": forever}}
		d := dialerOf(t, p, "h1:1", func(c *Config) { c.Timeout, c.ConnectTimeout = 3*time.Second, 3*time.Second })
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		if _, _, err := d.Dial(ctx, staking(0)); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("%v after %v, want ctx's, after 2 s", err, time.Since(start))
		}
		synctest.Wait()
		n := len(p.dialed)
		if _, _, err := d.Dial(ctx, staking(0)); !errors.Is(err, context.DeadlineExceeded) || len(p.dialed) != n {
			t.Errorf("%v; %d dials when ctx had ended", err, len(p.dialed)-n)
		}
	})
}

// A dialer that does not honour its context does not keep Close from returning.
func TestDialerClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{}
		deaf := make(chan struct{})
		d := New(configOf(t, func(ctx context.Context, network, addr string) (net.Conn, error) {
			<-deaf
			return p.dial(ctx, network, addr)
		}, "h1:1", nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, _ = d.Dial(ctx, staking(0))
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		d.Close(ctx)
		if time.Since(start) != time.Second {
			t.Errorf("closed after %v", time.Since(start))
		}
		close(deaf)
		d.Close(t.Context())
		if len(p.made) > 0 && p.open() != 0 {
			t.Error("a late connection is left open")
		}
	})
}

// A dial after Close makes no connection, and waits for its own context: a teardown that has given up may still
// try, while Close waits for the dials.
func TestDialAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{}
		d := New(configOf(t, p.dial, "h1:1", nil))
		d.Close(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if c, _, err := d.DialNow(ctx); c != nil || !errors.Is(err, context.DeadlineExceeded) || len(p.dialed) > 0 {
			t.Errorf("connection %v, error %v, after %d dials", c, err, len(p.dialed))
		}
	})
}

// A specific reason for having no connection is kept when a less specific one comes.
func TestDialerSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("no route to host")
		p := &pipes{slow: map[string]time.Duration{"dark:1": forever}, errs: map[string]error{"a:1": why}}
		d := dialerOf(t, p, "dark:1,a:1", nil)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, _, _ = d.Dial(ctx, staking(0))
		if !errors.Is(d.LastFailure(), why) {
			t.Errorf("last failure %v, want %v", d.LastFailure(), why)
		}
		slices.Sort(p.dialed)
		if got := slices.Compact(p.dialed); len(got) != 2 {
			t.Errorf("dialled %v", got)
		}
	})
}
