package dial

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/fakedns"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/loglines"
)

// registry is a resolver of the user.
type registry struct {
	mu      sync.Mutex
	servers []string
	err     error
	slow    time.Duration
	asked   int
}

func (r *registry) set(err error, slow time.Duration, servers ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers, r.err, r.slow = servers, err, slow
}

func (r *registry) resolve(ctx context.Context) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if err := rounds.Pause(ctx, r.slow); err != nil {
		return nil, err
	}
	return r.servers, r.err
}

const askLimit = 3 * time.Second

func listedHosts(t *testing.T, r *registry, dns *fakedns.Resolver, servers ...Server) *hosts {
	h := hostsOf(t, dns, servers...)
	h.list = &list{ask: r.resolve, limit: askLimit, complain: func(string) {}}
	return h
}

// Each round asks for the servers. Those that stay are not resolved again in the middle of a round, and those that
// are gone are not dialled.
func TestListRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &registry{servers: []string{"a:1", " 10.0.0.9 ", "a:1"}}
		dns := &fakedns.Resolver{Names: map[string][]string{"a": {"10.0.0.1"}, "b": {"10.0.0.2"}}}
		h := listedHosts(t, r, dns)
		want := []string{"10.0.0.1:1 for a", "10.0.0.9:2181 for 10.0.0.9"}
		if got := takeRound(t, h, 2); !slices.Equal(got, want) || r.asked != 1 {
			t.Errorf("got %v after %d questions, want %v after 1", got, r.asked, want)
		}
		r.set(nil, 0, "b:1", "a:1")
		dns.Asked = 0
		want = []string{"10.0.0.1:1 for a", "10.0.0.2:1 for b"}
		if got := takeRound(t, h, 2); !slices.Equal(got, want) || r.asked != 2 || dns.Asked != 2 {
			t.Errorf("got %v after %d questions and %d lookups, want %v after 2 and 2", got, r.asked, dns.Asked, want)
		}
	})
}

// What a resolver that is of no use costs: with servers that are known, at most staleDelay, and their dials go on.
func TestListStale(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		slow time.Duration
		list []string
		wait time.Duration
		why  string
	}{
		{"hangs", nil, forever, nil, staleDelay, "no answer"},
		{"is slow", nil, time.Second, []string{"10.0.0.5"}, staleDelay, ""},
		{"fails", errors.New("no leader"), 0, nil, 0, "no leader"},
		{"is empty", nil, 0, nil, 0, "names no server"},
		{"has bad ones only", nil, 0, []string{"h:0", "h/app"}, 0, `port "0" is not a number`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &registry{}
				r.set(c.err, c.slow, c.list...)
				h := listedHosts(t, r, nil, Server{"10.0.0.1", "1"})
				if got, took := nextAddr(t, h); got != "10.0.0.1:1" || took != c.wait {
					t.Errorf("%s after %v, want the known server after %v", got, took, c.wait)
				}
				time.Sleep(2 * askLimit)
				synctest.Wait()
				text := ""
				if all := h.failedNames(); len(all) > 0 {
					text = all[0].Error()
				}
				if c.why == "" && text != "" || !strings.Contains(text, c.why) || c.why != "" && !strings.HasPrefix(text, "ask the resolver: ") {
					t.Errorf("the reason is %q, want %q", text, c.why)
				}
				// Once it has answered again, its servers are dialled.
				r.set(nil, 0, "10.0.0.7")
				h.renew()
				nextAddr(t, h)
				synctest.Wait()
				if got, took := nextAddr(t, h); got != "10.0.0.7:2181" || took != 0 || len(h.failedNames()) > 0 {
					t.Errorf("%s after %v, failures %v", got, took, h.failedNames())
				}
			})
		})
	}
}

// A resolver that hangs is called by one goroutine at a time, however many rounds begin meanwhile.
func TestListAsksOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hostsOf(t, nil, Server{"10.0.0.1", "1"})
		var calls atomic.Int32
		h.list = &list{limit: askLimit, complain: func(string) {}, ask: func(ctx context.Context) ([]string, error) {
			if n := calls.Add(1); n > 1 {
				t.Errorf("%d calls at once", n)
			}
			defer calls.Add(-1)
			return nil, rounds.Pause(ctx, forever)
		}}
		for range 20 {
			nextAddr(t, h)
			time.Sleep(askLimit / 10)
		}
	})
}

// Without known servers a round fails, within the limit, and the next one asks again.
func TestListNothingKnown(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		slow time.Duration
		took time.Duration
		why  string
	}{
		"fails": {errors.New("no leader"), 0, 0, "ask the resolver: no leader"},
		"hangs": {nil, forever, askLimit, "ask the resolver: no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &registry{}
				r.set(c.err, c.slow)
				h := listedHosts(t, r, nil)
				for i := range 2 {
					start := time.Now()
					_, err := h.next(t.Context())
					if err == nil || err.Error() != c.why || time.Since(start) != c.took || r.asked != i+1 {
						t.Errorf("%v after %v and %d questions, want %q after %v and %d", err, time.Since(start), r.asked, c.why, c.took, i+1)
					}
				}
			})
		})
	}
}

// A resolver that ends its goroutine has failed.
func TestListGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hostsOf(t, nil)
		h.list = &list{limit: askLimit, ask: func(context.Context) ([]string, error) { runtime.Goexit(); return nil, nil }}
		if _, err := h.next(t.Context()); err == nil || !strings.Contains(err.Error(), "Goexit") {
			t.Errorf("got %v", err)
		}
	})
}

// Servers that cannot be one are left out, and the log names them once.
func TestListBadServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := loglines.New()
		r := &registry{servers: []string{"10.0.0.1:1", "zk 2", "h1:1,h2:1", "h3:1/app", ""}}
		cfg := configOf(t, (&pipes{}).dial, "10.0.0.1:1", func(c *Config) {
			c.Servers, c.Resolve, c.Log = nil, r.resolve, slog.New(lines)
		})
		d := New(cfg)
		defer d.Close(t.Context())
		for range 3 {
			if got, _ := nextAddr(t, d.hosts); got != "10.0.0.1:1" {
				t.Errorf("got %s", got)
			}
		}
		for _, want := range []string{"zk 2", "h1:1,h2:1", "h3:1/app", "empty server name"} {
			if got := lines.With(want); len(got) != 1 || got[0].Level != slog.LevelWarn {
				t.Errorf("want %q in one warning of %v", want, lines.All())
			}
		}
	})
}
