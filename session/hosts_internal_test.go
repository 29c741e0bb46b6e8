package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"
)

type fakeDNS struct {
	mu    sync.Mutex
	names map[string][]string
	asked int
}

func (d *fakeDNS) lookup(_ context.Context, host string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	if ips := d.names[host]; ips != nil {
		return ips, nil
	}
	return nil, fmt.Errorf("no such host: %s", host)
}

func takeRound(t *testing.T, h *hosts, n int) []string {
	t.Helper()
	var out []string
	for range n {
		g, err := h.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, g.addr+" for "+g.host)
	}
	slices.Sort(out)
	return out
}

// Each round asks for the names again, and leaves out those that have no address.
func TestHostsRounds(t *testing.T) {
	dns := &fakeDNS{names: map[string][]string{"a": {"10.0.0.1", "10.0.0.2"}}}
	h := &hosts{servers: []hostPort{{"a", "1"}, {"b", "2"}, {"10.0.0.9", "3"}}, lookup: dns.lookup}
	want := []string{"10.0.0.1:1 for a", "10.0.0.2:1 for a", "10.0.0.9:3 for 10.0.0.9"}
	if got := takeRound(t, h, 3); !slices.Equal(got, want) {
		t.Errorf("first round: %v, want %v", got, want)
	}
	dns.names = map[string][]string{"b": {"::1"}}
	want = []string{"10.0.0.9:3 for 10.0.0.9", "[::1]:2 for b"}
	if got := takeRound(t, h, 2); !slices.Equal(got, want) {
		t.Errorf("second round: %v, want %v", got, want)
	}
	if dns.asked != 4 {
		t.Errorf("%d lookups, want 4: two names in two rounds, none for an address", dns.asked)
	}
}

func TestHostsAllBad(t *testing.T) {
	dns := &fakeDNS{}
	h := &hosts{servers: []hostPort{{"a", "1"}, {"b", "2"}}, lookup: dns.lookup}
	if _, err := h.next(t.Context()); err == nil {
		t.Fatal("no error")
	}
	dns.names = map[string][]string{"a": {"10.0.0.1"}}
	if got := takeRound(t, h, 1); got[0] != "10.0.0.1:1 for a" {
		t.Errorf("the next call: %v", got)
	}
}

func TestHostsLastIsNotFirst(t *testing.T) {
	h := &hosts{servers: []hostPort{{"a", "1"}, {"b", "1"}, {"c", "1"}}}
	seen := map[string]bool{}
	for range 100 {
		var last target
		for i := range 3 {
			g, _ := h.next(t.Context())
			if i == 0 && g == h.last && g == last {
				t.Fatal("the same server twice in a row")
			}
			if i == 0 {
				seen[g.host] = true
			}
			last = g
		}
		next, _ := h.next(t.Context())
		if next == last {
			t.Fatal("a round begins with the server tried last")
		}
		h.round = nil
	}
	if len(seen) != 3 {
		t.Errorf("100 rounds began with %v only: no shuffle", seen)
	}
	one := &hosts{servers: []hostPort{{"a", "1"}}}
	if got := takeRound(t, one, 3); len(got) != 3 {
		t.Error("a single server is not tried again")
	}
}

// With a dialer of the user's, names are dialled as they are.
func TestHostsNoLookupWithDialer(t *testing.T) {
	var got []string
	cfg := newFakeConfig(t, WithDialer(func(_ context.Context, _, addr string) (net.Conn, error) {
		got = append(got, addr)
		return nil, errors.New("not today")
	}))
	d := newDialer(cfg)
	if _, _, err := d.dialNow(t.Context()); err == nil || d.lastFailure() == nil {
		t.Errorf("got %v, last failure %v", err, d.lastFailure())
	}
	if !slices.Equal(got, []string{"h1:1"}) {
		t.Errorf("dialled %v", got)
	}
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

// The first dial is made at once; waits grow until a connection was of use, and a
// policy that says stop only begins anew.
func TestDialerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		d := newDialer(newFakeConfig(t,
			WithRetry(func() backoff.BackOff { return &steps{stop: 3} }),
			WithDialer(func(context.Context, string, string) (net.Conn, error) { return near, nil })))
		for i, c := range []struct {
			useful bool
			want   time.Duration
		}{
			{false, 0}, {false, 1}, {false, 2}, {false, 3}, {false, 1}, // 1: it had said stop
			{true, 0}, {false, 1}, {true, 0}, {true, 0}, {false, 1}, {false, 2},
		} {
			d.useful.Store(c.useful)
			start := time.Now()
			if _, _, err := d.dial(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != c.want*time.Second {
				t.Errorf("dial %d after %v, want %v", i, got, c.want*time.Second)
			}
		}
	})
	if got := untiring(&steps{}); got <= 0 {
		t.Errorf("a policy that knows only stop: %v", got)
	}
}

// A name whose lookup hangs keeps nobody from a server that has an address: nor does it in
// the next round.
func TestDialerSlowName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		d := newDialer(newFakeConfig(t, WithTimeout(3*time.Second),
			WithDialer(func(ctx context.Context, _, _ string) (net.Conn, error) { return near, ctx.Err() })))
		d.hosts.servers = []hostPort{{"slow", "1"}, {"10.0.0.9", "1"}}
		d.hosts.lookup = func(ctx context.Context, _ string) ([]string, error) { <-ctx.Done(); return nil, ctx.Err() }
		for range 2 {
			if _, to, err := d.dialNow(t.Context()); err != nil || to.addr != "10.0.0.9:1" {
				t.Errorf("%q, %v", to.addr, err)
			}
		}
	})
}

func TestDialerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialer(newFakeConfig(t, WithTimeout(3*time.Second),
			WithDialer(func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() })))
		start := time.Now()
		if _, _, err := d.dial(t.Context(), nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v, want WithConnectTimeout's, after a second", err, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := d.dial(ctx, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}
