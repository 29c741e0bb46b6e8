package dial

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/logbook"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/fakedns"
)

const forever = time.Hour

func hostsOf(t *testing.T, dns *fakedns.Resolver, servers ...Server) *hosts {
	h := newHosts(servers, nil)
	if dns != nil {
		h = newHosts(servers, dns.Lookup)
	}
	t.Cleanup(h.lookups.Wait)
	t.Cleanup(h.end)
	return h
}

// nextAddr returns the next address, and how long the call took.
func nextAddr(t *testing.T, h *hosts) (string, time.Duration) {
	t.Helper()
	start := time.Now()
	g, err := h.next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return g.Addr, time.Since(start)
}

func takeRound(t *testing.T, h *hosts, n int) []string {
	t.Helper()
	var out []string
	for range n {
		g, err := h.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, g.Addr+" for "+g.Host)
	}
	slices.Sort(out)
	return out
}

// Each round resolves the names again, and leaves out names without an address.
func TestHostsRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakedns.Resolver{Names: map[string][]string{"a": {"10.0.0.1", "10.0.0.2"}}}
		h := hostsOf(t, dns, Server{"a", "1"}, Server{"b", "2"}, Server{"10.0.0.9", "3"}, Server{"fe80::1%eth0", "4"})
		want := []string{
			"10.0.0.1:1 for a", "10.0.0.2:1 for a", "10.0.0.9:3 for 10.0.0.9",
			"[fe80::1%eth0]:4 for fe80::1%eth0",
		}
		if got := takeRound(t, h, 4); !slices.Equal(got, want) {
			t.Errorf("first round: %v, want %v", got, want)
		}
		dns.Set(map[string][]string{"b": {"::1"}}, nil)
		want = []string{"10.0.0.9:3 for 10.0.0.9", "[::1]:2 for b", "[fe80::1%eth0]:4 for fe80::1%eth0"}
		if got := takeRound(t, h, 3); !slices.Equal(got, want) {
			t.Errorf("second round: %v, want %v", got, want)
		}
		if dns.Asked != 4 {
			t.Errorf("%d lookups, want 4: two names in two rounds, none for an address", dns.Asked)
		}
	})
}

func TestHostsAllBad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakedns.Resolver{}
		h := hostsOf(t, dns, Server{"a", "1"}, Server{"b", "1"})
		_, err := h.next(t.Context())
		if err == nil || !strings.Contains(err.Error(), "no such host") {
			t.Fatalf("%v does not say why", err)
		}
		dns.Set(map[string][]string{"a": {"10.0.0.1"}, "b": {}}, nil)
		if got, _ := nextAddr(t, h); got != "10.0.0.1:1" {
			t.Errorf("the next call: %v", got)
		}
	})
}

func TestHostsLastIsNotFirst(t *testing.T) {
	h := hostsOf(t, nil, Server{"a", "1"}, Server{"b", "1"}, Server{"c", "1"})
	seen := map[string]bool{}
	for range 100 {
		first, _ := nextAddr(t, h)
		seen[first] = true
		if again := takeRound(t, h, 2); slices.Contains(again, first) {
			t.Fatalf("a round of %s and %v", first, again)
		}
		last := h.last.Addr
		if next, _ := nextAddr(t, h); next == last {
			t.Fatal("a round begins with the server tried last")
		}
		h.won(logbook.Target{Addr: "a:1", Host: "a"})
		h.renew()
		if next, _ := nextAddr(t, h); next == "a:1" {
			t.Fatal("a round begins with the server that the last connection went to")
		}
		h.renew()
	}
	if len(seen) != 3 {
		t.Errorf("100 rounds began with %v only: no shuffle", seen)
	}
	one := hostsOf(t, nil, Server{"a", "1"})
	if got := takeRound(t, one, 3); len(got) != 3 {
		t.Error("a single server is not tried again")
	}
}

// The rest of a round is not dialled once it is old, or has been given up.
func TestHostsRoundsGrowOld(t *testing.T) {
	for name, age := range map[string]func(*hosts){
		"by time":  func(*hosts) { time.Sleep(roundTimeout + 1) },
		"by renew": (*hosts).renew,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dns := &fakedns.Resolver{Names: map[string][]string{"a": {"10.0.0.1", "10.0.0.2", "10.0.0.3"}}}
				h := hostsOf(t, dns, Server{"a", "1"})
				nextAddr(t, h)
				dns.Set(map[string][]string{"a": {"10.0.1.1"}}, nil)
				if old, _ := nextAddr(t, h); old == "10.0.1.1:1" {
					t.Error("resolved in the middle of a round")
				}
				age(h)
				if got, _ := nextAddr(t, h); got != "10.0.1.1:1" {
					t.Errorf("dialled %s", got)
				}
			})
		})
	}
}

// How long a dial waits for names: not at all if all are known, a moment for names of its round,
// and longer only if there is no other address.
func TestHostsSlowNames(t *testing.T) {
	type names = map[string][]string
	type delays = map[string]time.Duration
	for _, c := range []struct {
		name    string
		servers []Server
		names   names
		slow    delays
		want    string
		wait    time.Duration
	}{
		{"fast", []Server{{"a", "1"}}, names{"a": {"10.0.0.1"}}, nil, "10.0.0.1:1", 0},
		{"slow", []Server{{"a", "1"}}, names{"a": {"10.0.0.1"}}, delays{"a": 3 * time.Second}, "10.0.0.1:1", 3 * time.Second},
		{
			"an address and a name that hangs",
			[]Server{{"10.0.0.9", "1"}, {"a", "1"}}, nil, delays{"a": forever}, "10.0.0.9:1", resolutionDelay,
		},
		{
			"a name, and one that hangs",
			[]Server{{"a", "1"}, {"b", "1"}}, names{"a": {"10.0.0.1"}}, delays{"b": forever}, "10.0.0.1:1", resolutionDelay,
		},
		{
			"a name that takes a moment, and one that hangs",
			[]Server{{"a", "1"}, {"b", "1"}}, names{"a": {"10.0.0.1"}},
			delays{"a": 200 * time.Millisecond, "b": forever}, "10.0.0.1:1", 200 * time.Millisecond,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hostsOf(t, &fakedns.Resolver{Names: c.names, Slow: c.slow}, c.servers...)
				if got, wait := nextAddr(t, h); got != c.want || wait != c.wait {
					t.Errorf("%s after %v, want %s after %v", got, wait, c.want, c.wait)
				}
				// The name that hangs costs nothing any more.
				if got, wait := nextAddr(t, h); c.slow["a"] == 0 && (got != c.want || wait != 0) {
					t.Errorf("the second: %s after %v", got, wait)
				}
			})
		})
	}
}

// A late name joins the round.
func TestHostsLateName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakedns.Resolver{
			Names: map[string][]string{"a": {"10.0.0.1"}},
			Slow:  map[string]time.Duration{"a": time.Second},
		}
		h := hostsOf(t, dns, Server{"10.0.0.8", "1"}, Server{"10.0.0.9", "1"}, Server{"a", "1"})
		first, _ := nextAddr(t, h)
		time.Sleep(time.Second)
		rest := takeRound(t, h, 2)
		if !slices.Contains(rest, "10.0.0.1:1 for a") || dns.Asked != 1 {
			t.Errorf("%s, then %v, with %d lookups", first, rest, dns.Asked)
		}
	})
}

// If the resolver does not answer, as in a network outage, the old addresses stay. If it says
// that the name no longer exists, they go.
func TestHostsStale(t *testing.T) {
	for _, c := range []struct {
		name string
		slow time.Duration
		err  error
		want string
		wait time.Duration
	}{
		{"hangs", forever, nil, "10.0.0.1:1", staleDelay},
		{"fails", 0, fmt.Errorf("server misbehaving"), "10.0.0.1:1", 0},
		{"has it no more", 0, nil, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dns := &fakedns.Resolver{Names: map[string][]string{"a": {"10.0.0.1"}}}
				h := hostsOf(t, dns, Server{"a", "1"})
				nextAddr(t, h)
				time.Sleep(forever)
				dns.Set(nil, map[string]time.Duration{"a": c.slow})
				dns.Err = c.err
				for i := range 3 {
					start := time.Now()
					got, err := h.next(t.Context())
					if i > 0 {
						c.wait = 0
					}
					if got.Addr != c.want || (err == nil) != (c.want != "") || time.Since(start) != c.wait {
						t.Errorf("dial %d: %q, %v after %v, want %q after %v", i, got.Addr, err, time.Since(start), c.want, c.wait)
					}
				}
				dns.Set(map[string][]string{"a": {"10.0.1.1"}}, nil)
				time.Sleep(lookupTimeout)
				nextAddr(t, h)
				synctest.Wait()
				if got, _ := nextAddr(t, h); got != "10.0.1.1:1" {
					t.Errorf("the resolver is back: %s", got)
				}
			})
		})
	}
}

// A dial ends with its context while a name hangs, and all lookups end at the end.
func TestHostsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hostsOf(t, &fakedns.Resolver{Slow: map[string]time.Duration{"a": forever}}, Server{"a", "1"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := h.next(ctx); err == nil || !strings.Contains(err.Error(), "resolve") {
			t.Errorf("%v does not say why", err)
		}
		start := time.Now()
		h.end()
		h.lookups.Wait()
		if time.Since(start) != 0 {
			t.Errorf("the lookup ended after %v", time.Since(start))
		}
	})
}
