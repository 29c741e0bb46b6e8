package dial

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/fakedns"
)

const forever = time.Hour

func staking(left time.Duration) Remaining { return func() time.Duration { return left } }

// nothing is the Remaining of a manager without a session.
var nothing = staking(0)

// network is a dialer of the user. Its connections are pipes, and know whether they were closed.
type network struct {
	mu     sync.Mutex
	dialed []string
	slow   map[string]time.Duration // by address
	errs   map[string]error
	open   int // connections
	busy   int // dials
}

type pipe struct {
	net.Conn
	close func()
}

func (p *pipe) Close() error { p.close(); return nil }

func (n *network) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	n.dialed = append(n.dialed, addr)
	n.busy++
	slow, err := n.slow[addr], n.errs[addr]
	n.mu.Unlock()
	defer func() { n.mu.Lock(); n.busy--; n.mu.Unlock() }()
	if late := rounds.Until(ctx, nil, slow); late != nil {
		return nil, late
	}
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open++
	return &pipe{near, sync.OnceFunc(func() {
		near.Close()
		far.Close()
		n.mu.Lock()
		n.open--
		n.mu.Unlock()
	})}, nil
}

// take returns the addresses that were dialled since the last call.
func (n *network) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.dialed
	n.dialed = nil
	return d
}

// counts returns how many connections are open, and how many dials are under way.
func (n *network) counts() (open, busy int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open, n.busy
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newDialer returns a dialer for servers such as "h1:1,h2:1". change may be nil.
func newDialer(t *testing.T, n *network, servers string, change func(*Config)) *Dialer {
	t.Helper()
	cfg := Config{Dial: n.dial, Timeout: 10 * time.Second, Waits: rounds.Backoff{First: 50 * time.Millisecond, Most: 5 * time.Second}}
	var err error
	if cfg.Servers, _, err = Parse(servers); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&cfg)
	}
	d := New(cfg)
	t.Cleanup(func() { d.Close(context.Background()) })
	return d
}

// named returns a change for a dialer whose names are resolved by dns.
func named(dns *fakedns.Resolver) func(*Config) {
	return func(c *Config) { c.Lookup = dns.Lookup }
}

// nextAddr returns the next address, and how long that took.
func nextAddr(t *testing.T, d *Dialer) (string, time.Duration) {
	t.Helper()
	start := time.Now()
	to, _, err := d.hosts.next(t.Context(), &d.turn)
	must(t, err)
	return to.Addr, time.Since(start)
}

// nextRound returns the next n addresses, with their names.
func nextRound(t *testing.T, d *Dialer, n int) (out []string) {
	t.Helper()
	for range n {
		to, _, err := d.hosts.next(t.Context(), &d.turn)
		must(t, err)
		out = append(out, to.Addr+" for "+to.Host)
	}
	slices.Sort(out)
	return out
}
