package dial

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/fakedns"
)

// TestRounds resolves the names again in each round, and leaves out names without an address.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakedns.Resolver{Names: map[string][]string{"a": {"10.0.0.1", "10.0.0.2"}}}
		d := newDialer(t, nil, "a:1,b:2,10.0.0.9:3,[fe80::1%eth0]:4", named(dns))
		want := []string{
			"10.0.0.1:1 for a", "10.0.0.2:1 for a", "10.0.0.9:3 for 10.0.0.9",
			"[fe80::1%eth0]:4 for fe80::1%eth0",
		}
		if got := nextRound(t, d, 4); !slices.Equal(got, want) {
			t.Errorf("first round: %v, want %v", got, want)
		}
		dns.Set(map[string][]string{"b": {"::1"}}, nil)
		want = []string{"10.0.0.9:3 for 10.0.0.9", "[::1]:2 for b", "[fe80::1%eth0]:4 for fe80::1%eth0"}
		if got := nextRound(t, d, 3); !slices.Equal(got, want) {
			t.Errorf("second round: %v, want %v", got, want)
		}
		if dns.Asked != 4 {
			t.Errorf("%d lookups, want 4: two names in two rounds, none for an address", dns.Asked)
		}
	})
}

// TestNoAddress says why no address is known, and asks again at the next dial.
func TestNoAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakedns.Resolver{}
		d := newDialer(t, nil, "a:1,b:1", named(dns))
		_, _, err := d.hosts.next(t.Context(), &d.turn)
		if err == nil || !strings.Contains(err.Error(), "resolve a") || !strings.Contains(err.Error(), "no such host") {
			t.Fatalf("%v does not say why", err)
		}
		dns.Set(map[string][]string{"a": {"10.0.0.1"}, "b": {}}, nil)
		if got, _ := nextAddr(t, d); got != "10.0.0.1:1" {
			t.Errorf("the next call: %v", got)
		}
		if err := d.Unresolved(); err == nil || strings.Contains(err.Error(), "resolve a") || !strings.Contains(err.Error(), "resolve b") {
			t.Errorf("unresolved: %v", err)
		}
	})
}

// TestShuffled begins no round with the address that was dialled last, and begins rounds with all of them.
func TestShuffled(t *testing.T) {
	d := newDialer(t, nil, "a:1,b:1,c:1", nil)
	seen := map[string]bool{}
	for range 100 {
		first, _ := nextAddr(t, d)
		seen[first] = true
		if again := nextRound(t, d, 2); slices.ContainsFunc(again, func(s string) bool { return strings.HasPrefix(s, first) }) {
			t.Fatalf("a round of %s and %v", first, again)
		}
		last := d.turn.last.Addr
		if next, _ := nextAddr(t, d); next == last {
			t.Fatal("a round begins with the server tried last")
		}
		last = d.turn.last.Addr
		d.hosts.renew(&d.turn)
		if next, _ := nextAddr(t, d); next == last {
			t.Fatal("a round begins with the server that the last connection went to")
		}
		d.hosts.renew(&d.turn)
	}
	if len(seen) != 3 {
		t.Errorf("100 rounds began with %v only: no shuffle", seen)
	}
	if got := nextRound(t, newDialer(t, nil, "a:1", nil), 3); len(got) != 3 {
		t.Error("a single server is not tried again")
	}
}

// TestRoundsGrowOld does not dial the rest of a round once it is old, or has been given up.
func TestRoundsGrowOld(t *testing.T) {
	for name, age := range map[string]func(*Dialer){
		"by time":  func(*Dialer) { time.Sleep(roundLasts) },
		"by renew": func(d *Dialer) { d.hosts.renew(&d.turn) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dns := &fakedns.Resolver{Names: map[string][]string{"a": {"10.0.0.1", "10.0.0.2", "10.0.0.3"}}}
				d := newDialer(t, nil, "a:1", named(dns))
				nextAddr(t, d)
				dns.Set(map[string][]string{"a": {"10.0.1.1"}}, nil)
				if old, _ := nextAddr(t, d); old == "10.0.1.1:1" {
					t.Error("resolved in the middle of a round")
				}
				age(d)
				if got, _ := nextAddr(t, d); got != "10.0.1.1:1" {
					t.Errorf("dialled %s", got)
				}
			})
		})
	}
}

// TestSlowNames has how long a dial waits for names: as long as it takes if no address is known, otherwise a moment, and
// not at all for a name that has hung for longer.
func TestSlowNames(t *testing.T) {
	type names = map[string][]string
	type delays = map[string]time.Duration
	for _, c := range []struct {
		name, servers string
		names         names
		slow          delays
		want          string
		wait          time.Duration
		instant       bool // from the second dial on
	}{
		{"fast", "a:1", names{"a": {"10.0.0.1"}}, nil, "10.0.0.1:1", 0, true},
		{"slow", "a:1", names{"a": {"10.0.0.1"}}, delays{"a": 3 * time.Second}, "10.0.0.1:1", 3 * time.Second, false},
		{"an address and a name that hangs", "10.0.0.9:1,a:1", nil, delays{"a": forever}, "10.0.0.9:1", lookupDelay, true},
		{"a name, and one that hangs", "a:1,b:1", names{"a": {"10.0.0.1"}}, delays{"b": forever}, "10.0.0.1:1", lookupDelay, true},
		{
			"a name that takes a while, and one that hangs", "a:1,b:1", names{"a": {"10.0.0.1"}},
			delays{"a": 2 * time.Second, "b": forever}, "10.0.0.1:1", 2 * time.Second, false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDialer(t, nil, c.servers, named(&fakedns.Resolver{Names: c.names, Slow: c.slow}))
				if got, wait := nextAddr(t, d); got != c.want || wait != c.wait {
					t.Errorf("%s after %v, want %s after %v", got, wait, c.want, c.wait)
				}
				for range 5 { // a name that goes on to hang costs nothing more
					if got, wait := nextAddr(t, d); c.instant && (got != c.want || wait != 0) {
						t.Errorf("a later dial: %s after %v", got, wait)
					}
				}
			})
		})
	}
}

// TestStaleNames keeps the old addresses if the resolver does not answer, as in an outage of the network. If it says that
// the name is gone, they go.
func TestStaleNames(t *testing.T) {
	for _, c := range []struct {
		name string
		slow time.Duration
		err  error
		want string
		wait time.Duration
	}{
		{"hangs", forever, nil, "10.0.0.1:1", lookupDelay},
		{"fails", 0, errors.New("server misbehaving"), "10.0.0.1:1", 0},
		{"has it no more", 0, nil, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dns := &fakedns.Resolver{Names: map[string][]string{"a": {"10.0.0.1"}}}
				d := newDialer(t, nil, "a:1", named(dns))
				nextAddr(t, d)
				time.Sleep(forever)
				dns.Set(nil, map[string]time.Duration{"a": c.slow})
				dns.Err = c.err
				for i := range 3 {
					start := time.Now()
					got, _, err := d.hosts.next(t.Context(), &d.turn)
					if i > 0 {
						c.wait = 0
					}
					if got.Addr != c.want || (err == nil) != (c.want != "") || time.Since(start) != c.wait {
						t.Errorf("dial %d: %q, %v after %v, want %q after %v", i, got.Addr, err, time.Since(start), c.want, c.wait)
					}
				}
				dns.Set(map[string][]string{"a": {"10.0.1.1"}}, nil)
				dns.Err = nil
				time.Sleep(lookupLimit)
				synctest.Wait()
				if got, _ := nextAddr(t, d); got != "10.0.1.1:1" {
					t.Errorf("the resolver is back: %s", got)
				}
			})
		})
	}
}

// TestLookupsEnd ends a dial with its context while a name hangs, and all lookups with the dialer. A resolver that does
// not honour its context is waited for no longer than lookupLimit.
func TestLookupsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialer(t, nil, "a:1", named(&fakedns.Resolver{Slow: map[string]time.Duration{"a": forever}}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := d.Dial(ctx, nothing); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		start := time.Now()
		d.Close(t.Context())
		if time.Since(start) != 0 {
			t.Errorf("the lookup ended after %v", time.Since(start))
		}
		hear := make(chan struct{})
		deaf := newDialer(t, nil, "a:1", func(c *Config) {
			c.Lookup = func(context.Context, string) ([]string, error) { <-hear; return nil, nil }
		})
		for range 3 {
			start = time.Now()
			_, _, err := deaf.DialNow(t.Context(), Target{})
			if err == nil || err.Error() != "resolve a: no answer" || time.Since(start) != lookupLimit {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		}
		close(hear)
	})
}

// errGoexit has a registry end the goroutine that asks it.
var errGoexit = errors.New("goexit")

// registry is a resolver of the user.
type registry struct {
	mu      sync.Mutex
	servers []string
	err     error
	slow    time.Duration
	asked   int
	busy    int
}

func (r *registry) set(err error, slow time.Duration, servers ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers, r.err, r.slow = servers, err, slow
}

func (r *registry) resolve(ctx context.Context) ([]string, error) {
	r.mu.Lock()
	r.asked++
	r.busy++
	slow, busy := r.slow, r.busy
	r.mu.Unlock()
	late := rounds.Until(ctx, nil, slow)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy--
	switch {
	case r.err == errGoexit:
		runtime.Goexit()
	case busy > 1:
		panic("two calls at once")
	case late != nil:
		return nil, late
	}
	return slices.Clone(r.servers), r.err
}

func listed(r *registry, dns *fakedns.Resolver) func(*Config) {
	return func(c *Config) {
		c.Resolve = r.resolve
		if dns != nil {
			c.Lookup = dns.Lookup
		}
	}
}

// TestResolver asks for the servers in each round, and dials none that are gone, or that cannot be one.
func TestResolver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &registry{servers: []string{"a:1", " 10.0.0.9 ", "a:1", "zk 2"}}
		dns := &fakedns.Resolver{Names: map[string][]string{"a": {"10.0.0.1"}, "b": {"10.0.0.2"}}}
		d := newDialer(t, nil, "", listed(r, dns))
		want := []string{"10.0.0.1:1 for a", "10.0.0.9:2181 for 10.0.0.9"}
		if got := nextRound(t, d, 2); !slices.Equal(got, want) || r.asked != 1 {
			t.Errorf("got %v after %d questions, want %v after 1", got, r.asked, want)
		}
		if err := d.Unresolved(); err == nil || !strings.Contains(err.Error(), "zk 2") {
			t.Errorf("%v does not name the server that cannot be one", err)
		}
		r.set(nil, 0, "b:1", "c:1")
		dns.Asked = 0
		want = []string{"10.0.0.2:1 for b"}
		if got := nextRound(t, d, 1); !slices.Equal(got, want) || r.asked != 2 || dns.Asked != 2 {
			t.Errorf("got %v after %d questions and %d lookups, want %v after 2 and 2", got, r.asked, dns.Asked, want)
		}
		r.set(nil, 0, "b:1")
		nextAddr(t, d)
		if err := d.Unresolved(); err != nil {
			t.Errorf("a server that is gone is complained about: %v", err)
		}
	})
}

// TestBadResolver dials the servers that are known while the resolver is of no use.
func TestBadResolver(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		slow time.Duration
		list []string
		wait time.Duration
		why  string
	}{
		{"hangs", nil, forever, nil, lookupDelay, "no answer"},
		{"is slow", nil, time.Second, []string{"10.0.0.5"}, lookupDelay, "no answer"},
		{"fails", errors.New("no leader"), 0, nil, 0, "no leader"},
		{"ends its goroutine", errGoexit, 0, nil, 0, "not returned"},
		{"is empty", nil, 0, nil, 0, "names no server"},
		{"has bad ones only", nil, 0, []string{"h:0", "h/app"}, 0, `port "0" is not a number`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &registry{}
				r.set(c.err, c.slow, c.list...)
				d := newDialer(t, nil, "10.0.0.1:1", listed(r, nil))
				if got, took := nextAddr(t, d); got != "10.0.0.1:1" || took != c.wait {
					t.Errorf("%s after %v, want the known server after %v", got, took, c.wait)
				}
				if why := d.Unresolved(); why == nil || !strings.HasPrefix(why.Error(), "ask the resolver: ") || !strings.Contains(why.Error(), c.why) {
					t.Errorf("the reason is %v, want %q", why, c.why)
				}
				r.set(nil, 0, "10.0.0.7")
				time.Sleep(lookupLimit)
				synctest.Wait()
				if got, took := nextAddr(t, d); got != "10.0.0.7:2181" || took != 0 || d.Unresolved() != nil {
					t.Errorf("%s after %v, failures %v", got, took, d.Unresolved())
				}
			})
		})
	}
}

// TestUsefulBeginsARound resolves the names again after a connection that was of use, because it may have lasted for long,
// and gives servers the times of the first round.
func TestUsefulBeginsARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakedns.Resolver{Names: map[string][]string{"a": {"10.0.0.1", "10.0.0.2", "10.0.0.3"}}}
		n := &network{}
		d := newDialer(t, n, "a:1", named(dns))
		for range 4 { // into the second round
			c, _, err := d.Dial(t.Context(), staking(time.Minute))
			must(t, err)
			c.Close()
		}
		if got := d.HandshakeLimit(staking(time.Minute)); got != 30*time.Second {
			t.Errorf("a greeting within %v in the second round", got)
		}
		dns.Set(map[string][]string{"a": {"10.0.1.1"}}, nil)
		d.Useful()
		c, to, err := d.Dial(t.Context(), staking(time.Minute))
		if err != nil || to.Addr != "10.0.1.1:1" || d.HandshakeLimit(staking(time.Minute)) != 15*time.Second {
			t.Fatalf("%v from %s, and a greeting within %v", err, to, d.HandshakeLimit(staking(time.Minute)))
		}
		c.Close()
	})
}
