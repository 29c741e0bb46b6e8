package dial

import (
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/rounds"
)

// TestWaits dials at once at first and after a connection that was of use, and otherwise after waits that grow.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialer(t, &network{}, "h1:1", nil)
		dial := func(left Remaining) time.Duration {
			start := time.Now()
			c, _, err := d.Dial(t.Context(), left)
			must(t, err)
			c.Close()
			return time.Since(start)
		}
		longest := func(left Remaining) (most time.Duration) {
			for range 100 {
				most = max(most, dial(left))
			}
			return most
		}
		if got := dial(nothing); got != 0 {
			t.Errorf("the first dial after %v", got)
		}
		if got := longest(nothing); got < 2*time.Second || got > 5*time.Second {
			t.Errorf("waits of up to %v, want nearly 5 s", got)
		}
		if got := longest(staking(4 * time.Second)); got < 300*time.Millisecond || got > 500*time.Millisecond {
			t.Errorf("waits of up to %v while 4 s are at stake, want an eighth", got)
		}
		d.Answered(usefulAfter - 1)
		d.Useful()
		d.Distrust()
		if dial(nothing)+dial(nothing)+dial(nothing) == 0 {
			t.Error("a connection of no use, and no wait")
		}
		d.Answered(usefulAfter)
		if got := dial(nothing); got != 0 {
			t.Errorf("a wait of %v after a connection that was of use", got)
		}
		if got := dial(nothing); got > 50*time.Millisecond {
			t.Errorf("a wait of %v, want one that has begun again", got)
		}
	})
}

// TestLimits has the times of dials and greetings, round by round, with two servers of which none answers.
func TestLimits(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		stake   time.Duration
		dials   []time.Duration // by round
		greets  []time.Duration
		timeout time.Duration
	}{
		{0, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 16 * s}, []time.Duration{15 * s, 30 * s, 60 * s, 60 * s}, 60 * s},
		{40 * s, []time.Duration{s, 2 * s, 4 * s, 8 * s, 40 * s / 3}, []time.Duration{10 * s, 20 * s, 20 * s}, 60 * s},
		{s, []time.Duration{s / 3, s / 3}, []time.Duration{s / 4, s / 2}, 60 * s},
	} {
		t.Run(c.stake.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &network{slow: map[string]time.Duration{"a:1": forever, "b:1": forever}}
				d := newDialer(t, n, "a:1,b:1", func(cfg *Config) { cfg.Timeout, cfg.Waits = c.timeout, rounds.Backoff{First: 1, Most: 1} })
				for round, want := range c.dials {
					for range 2 {
						start := time.Now()
						_, _, err := d.Dial(t.Context(), staking(c.stake))
						if took := time.Since(start); err == nil || !strings.Contains(err.Error(), "no answer") || took != want {
							t.Errorf("round %d: %v after %v, want %v", round, err, took, want)
						}
						if round < len(c.greets) && d.HandshakeLimit(staking(c.stake)) != c.greets[round] {
							t.Errorf("round %d: a greeting within %v, want %v", round, d.HandshakeLimit(staking(c.stake)), c.greets[round])
						}
						if want >= roundLasts {
							break // the next dial begins a round
						}
					}
				}
				synctest.Wait()
				if open, busy := n.counts(); open+busy > 0 {
					t.Errorf("%d connections, %d dials under way", open, busy)
				}
			})
		})
	}
}

// TestDialNow dials the server that it is told, or the next of a rotation of its own, and disturbs no waits.
func TestDialNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		d := newDialer(t, n, "a:1,b:1,c:1", nil)
		want := Target{Server{"b", "1"}, "b:1"}
		for range 3 {
			c, to, err := d.DialNow(t.Context(), want)
			if err != nil || to != want {
				t.Fatalf("%v from %s", err, to)
			}
			c.Close()
		}
		n.take()
		for range 3 {
			c, _, err := d.DialNow(t.Context(), Target{})
			must(t, err)
			c.Close()
		}
		got := n.take()
		if slices.Sort(got); !slices.Equal(got, []string{"a:1", "b:1", "c:1"}) {
			t.Errorf("three dials went to %v", got)
		}
		if d.turn.round != 0 || d.waited {
			t.Error("the session's dials are not as they were")
		}
	})
}

// TestDialerWithoutResult sees that a dialer which returns neither a connection nor an error, or ends its goroutine, has failed
// at once, keeps no slot, and is asked again.
func TestDialerWithoutResult(t *testing.T) {
	for want, ends := range map[string]func(){"neither a connection nor an error": func() {}, "has not returned": runtime.Goexit} {
		synctest.Test(t, func(t *testing.T) {
			n, calls := &network{}, 0
			d := newDialer(t, n, "a:1,b:1", func(c *Config) {
				c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if calls++; calls <= 3*mostDeaf {
						ends()
						return nil, nil
					}
					return n.dial(ctx, network, addr)
				}
			})
			for range 3 * mostDeaf {
				if _, _, err := d.Dial(t.Context(), staking(time.Second)); err == nil || !strings.Contains(err.Error(), want) {
					t.Fatal(err)
				}
			}
			c, _, err := d.Dial(t.Context(), nothing)
			must(t, err)
			c.Close()
		})
	}
}

// TestDeafDialer has a dialer that does not honour its context. Dial goes on without it, to other servers, for a number of
// times; neither Dial nor Close waits for it longer than their contexts last; and a connection that comes late is closed.
func TestDeafDialer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, hear := &network{}, make(chan struct{})
		d := newDialer(t, n, "deaf:1,a:1", func(c *Config) {
			c.Waits = rounds.Backoff{}
			c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if addr == "deaf:1" {
					<-hear
				}
				return n.dial(context.WithoutCancel(ctx), network, addr)
			}
		})
		answer := sync.OnceFunc(func() { close(hear) })
		t.Cleanup(answer)
		connected := 0
		for len(d.slots) < mostDeaf {
			if c, _, err := d.Dial(t.Context(), staking(3*time.Second)); err == nil {
				connected++
				c.Close()
			} else if !errors.Is(err, errNoAnswer) {
				t.Fatal(err)
			}
		}
		if connected < mostDeaf-1 {
			t.Errorf("%d connections beside %d dials that do not return", connected, mostDeaf)
		}
		if _, _, err := d.Dial(t.Context(), staking(3*time.Second)); !errors.Is(err, errDeaf) {
			t.Errorf("with %d dials that do not return: %v", mostDeaf, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, _, err := d.Dial(ctx, nothing); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		start = time.Now()
		d.Close(ctx)
		if time.Since(start) > time.Second {
			t.Errorf("closed after %v", time.Since(start))
		}
		answer()
		d.Close(t.Context())
		if open, busy := n.counts(); open+busy > 0 {
			t.Errorf("%d connections, %d dials under way", open, busy)
		}
	})
}

// TestDialAfterClose sees that a closed dialer neither dials nor resolves.
func TestDialAfterClose(t *testing.T) {
	for _, names := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n, asked := &network{}, 0
			d := newDialer(t, n, "h:1", func(c *Config) {
				if names {
					c.Lookup = func(context.Context, string) ([]string, error) { asked++; return nil, nil }
				}
			})
			d.Close(t.Context())
			if c, _, err := d.DialNow(t.Context(), Target{}); c != nil || err == nil || len(n.take()) > 0 || asked > 0 {
				t.Errorf("%v, %v", c, err)
			}
		})
	}
}
