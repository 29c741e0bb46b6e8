package callout

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// All functions run, however many at once. A few goroutines stay for the next functions, and end
// with the manager.
func TestWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const atOnce, rounds = 10 * idleWorkers, 3
		end := make(chan struct{})
		var w workers
		w.init(end)
		idle := func(n int) {
			t.Helper()
			synctest.Wait()
			if len(w.idle) != n {
				t.Errorf("%d goroutines wait for the next request, want %d", len(w.idle), n)
			}
		}
		var done atomic.Int64
		for range rounds {
			begin := make(chan struct{})
			for range atOnce {
				w.do(func() { <-begin; done.Add(1) })
			}
			idle(0)
			close(begin)
			idle(idleWorkers)
		}
		last := make(chan struct{})
		w.do(func() { <-last; done.Add(1) })
		close(end)
		idle(0)
		close(last)
		synctest.Wait() // at its end the bubble fails if a goroutine is left
		if n := done.Load(); n != rounds*atOnce+1 {
			t.Errorf("%d functions ran, of %d", n, rounds*atOnce+1)
		}
	})
}
