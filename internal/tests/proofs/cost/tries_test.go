package cost

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// TestBusyTries counts what the servers get from clients that try a held lock again and again, 30 times a second each. With
// WithReadFirst they write nothing, and each try takes one round trip in place of two.
func TestBusyTries(t *testing.T) {
	const each, between = 30, time.Second / 30
	clients := longtest.Pick(50, 800)
	for _, c := range []struct {
		what    string
		opts    []zklock.Option
		writes  int // of a try
		syncs   int
		inTrips float64
	}{
		{"as it is", nil, 2, 0, 2},
		{"WithReadFirst", []zklock.Option{zklock.WithReadFirst()}, 0, 1, 1},
	} {
		t.Run(c.what, func(t *testing.T) {
			bubble(t, func(w *world) {
				holder, err := zklock.New(w.other(longTimeout), lockPath)
				if err != nil {
					t.Fatal(err)
				}
				if err := holder.Lock(w.t.Context()); err != nil {
					t.Fatal(err)
				}
				all := w.managers(clients, longTimeout)
				time.Sleep(pause)
				w.meter.reset()
				var wg sync.WaitGroup
				var mu sync.Mutex
				least, most := math.Inf(1), 0.0
				for _, m := range all {
					mx, err := zklock.New(m, lockPath, c.opts...)
					if err != nil {
						t.Fatal(err)
					}
					wg.Go(func() {
						for range each {
							began := time.Now()
							if ok, err := mx.TryLock(w.t.Context()); ok || err != nil {
								t.Errorf("%v, %v", ok, err)
								return
							}
							mu.Lock()
							took := trips(time.Since(began))
							least, most = min(least, took), max(most, took)
							mu.Unlock()
							time.Sleep(between - time.Since(began))
						}
					})
				}
				wg.Wait()
				got := w.meter.read()
				writes, lists, syncs := got.of(zktest.OpCreate, zktest.OpDelete), got.of(zktest.OpGetChildren2), got.of(zktest.OpSync)
				t.Logf("%d clients in one second: %d creates and deletes, %d listings, %d syncs; a try took %v to %v round trips",
					clients, writes.requests, lists.requests, syncs.requests, least, most)
				tries := clients * each
				if writes.requests != c.writes*tries || lists.requests < tries || syncs.requests < c.syncs*tries {
					t.Errorf("want %d creates and deletes, %d listings, %d syncs", c.writes*tries, tries, c.syncs*tries)
				}
				if least != c.inTrips {
					t.Errorf("a try took %v round trips, want %v", least, c.inTrips)
				}
			})
		})
	}
}
