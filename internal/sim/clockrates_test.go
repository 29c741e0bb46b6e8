package sim

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/longtest"
)

// TestClockRates attacks the lease clock as TestLeaseSeeds does, on servers whose clocks run faster or
// slower than the client's. The default margin makes up for two percent in either direction. It does not
// make up for servers that are fast by a fifth: there some attacks must end with two holders, or the
// others show nothing.
func TestClockRates(t *testing.T) {
	longtest.Only(t)
	for _, c := range []struct {
		rate  float64
		holds bool
	}{{0.8, true}, {0.98, true}, {1.02, true}, {1.2, false}} {
		t.Run(fmt.Sprint(c.rate), func(t *testing.T) {
			overlaps, longest := 0, time.Duration(0)
			const n = 100
			for seed := range uint64(n) {
				a := newAttack(seed)
				a.rate, a.opts = c.rate, nil
				a.timeouts = []time.Duration{4 * time.Second, 10 * time.Second, 30 * time.Second}
				synctest.Test(t, func(t *testing.T) { a.run(t) })
				if a.overlap == 0 {
					continue
				}
				overlaps, longest = overlaps+1, max(longest, a.overlap)
				if c.holds {
					t.Errorf("seed %d, at %v: two holders for %v: %s", seed, a.at, a.overlap, a)
				}
			}
			t.Logf("%d attacks, two holders in %d of them, for %v at most", n, overlaps, longest)
			if !c.holds && overlaps == 0 {
				t.Error("the margin cannot be enough for this rate: these attacks show nothing")
			}
		})
	}
}
