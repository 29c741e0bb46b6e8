package outages

import (
	"fmt"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

const defaultTimeout = 10 * time.Second

// outages are the lengths of the outages that are measured.
var outages = []time.Duration{
	1 * time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, 4500 * time.Millisecond, 5 * time.Second,
	6 * time.Second, 7 * time.Second, 8 * time.Second, 9 * time.Second,
}

// survivable returns the longest outage in which no session of ten seconds may be lost.
func survivable(k knowledge) time.Duration {
	if k == unknown {
		return 3 * time.Second
	}
	return 4500 * time.Millisecond
}

// batch is how many sessions one bubble has at most.
const batch = 250

// endured is the result of an outage for n sessions.
type endured struct {
	n, lost int
	least   time.Duration // that remained to any of them as the outage began
}

func (e *endured) add(o endured) {
	if e.n == 0 || o.least < e.least {
		e.least = o.least
	}
	e.n += o.n
	e.lost += o.lost
}

// endure has n sessions that hold locks go through an outage.
func endure(t *testing.T, seed uint64, n int, timeout time.Duration, k knowledge, outage time.Duration) endured {
	t.Helper()
	var out endured
	for done := 0; done < n; done += batch {
		bubble(t, seed+uint64(done), func(w *world) {
			all := w.hold(min(batch, n-done), timeout, k)
			left := least(all)
			w.outage(outage)
			time.Sleep(timeout)
			out.add(endured{n: len(all), lost: lost(all), least: left})
		})
	}
	return out
}

// TestOutages has sessions of ten seconds go through an outage: all connections are reset, and
// dials are refused for a while. None may be lost in outages of up to 4.5 s if the tick is
// known, and of up to 3 s if it is not. For the table, longer outages are measured as well.
func TestOutages(t *testing.T) {
	table := make(map[knowledge][]endured)
	sessionsTried := 0
	for _, k := range []knowledge{told, learned, unknown} {
		t.Run(k.String(), func(t *testing.T) {
			for i, d := range outages {
				if d > survivable(k) && !*tableFlag {
					break
				}
				t.Run(fmt.Sprint(d), func(t *testing.T) {
					e := endure(t, uint64(1000*i), sessions(), defaultTimeout, k, d)
					t.Logf("lost %d of %d; the least that remained was %v", e.lost, e.n, e.least)
					sessionsTried += e.n
					if d <= survivable(k) && e.lost > 0 {
						t.Errorf("lost %d of %d sessions in an outage of %v, want none", e.lost, e.n, d)
					}
					table[k] = append(table[k], e)
				})
			}
		})
	}
	longtest.Covered(t, "%d sessions in outages", sessionsTried)
	if *write {
		writeOutages(t, table)
	}
}
