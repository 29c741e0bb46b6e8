package goroutines_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/goroutines"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Count counts what runs, and nothing that has ended while the garbage collector is at work.
func TestCount(t *testing.T) {
	const running, ended, rounds = 10, 5000, 20
	before := goroutines.Count()
	stop := make(chan struct{})
	var all sync.WaitGroup
	var collections atomic.Int64
	defer all.Wait()
	defer close(stop)
	all.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
				collections.Add(1)
			}
		}
	})
	for range running - 1 {
		all.Go(func() { <-stop })
	}
	for range rounds {
		var gone sync.WaitGroup
		start := make(chan struct{})
		for range ended {
			gone.Go(func() { <-start })
		}
		close(start)
		gone.Wait()
		for collected := collections.Load(); collections.Load() < collected+2; {
			if n := goroutines.Count() - before; n < running || n > running+ended/2 { // some can be on their way out
				t.Fatalf("%d goroutines, want %d", n, running)
			}
		}
	}
}

func waiting(on <-chan struct{}) { <-on }

// In counts the goroutines of one function.
func TestIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		end := make(chan struct{})
		for range n {
			go waiting(end)
			go func() { <-end }()
		}
		synctest.Wait()
		if got := goroutines.In("goroutines_test.waiting"); got != n {
			t.Errorf("%d goroutines, want %d", got, n)
		}
		close(end)
		synctest.Wait()
		if got := goroutines.In("goroutines_test.waiting"); got != 0 {
			t.Errorf("%d goroutines in the end", got)
		}
	})
}
