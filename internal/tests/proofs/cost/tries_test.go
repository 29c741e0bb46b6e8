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

// TestBusyTries counts what the servers get from clients that try a held lock again and again, 30 times a second each. They
// write nothing, and each try takes one round trip.
func TestBusyTries(t *testing.T) {
	const each, between = 30, time.Second / 30
	clients := longtest.Pick(50, 800)
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
			mx, err := zklock.New(m, lockPath)
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
		if writes.requests != 0 || lists.requests != tries || syncs.requests < tries {
			t.Errorf("want no creates and deletes, %d listings, %d syncs", tries, tries)
		}
		if least != 1 || most != 1 {
			t.Errorf("a try took %v to %v round trips, want 1", least, most)
		}
	})
}
