package zklock_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Many goroutines that wait for one Mutex cost little, and nothing after they are cancelled.
func TestWaitersAreCheap(t *testing.T) {
	waiters := longtest.Pick(300, 1000)
	const maxGoroutines, maxBytes = 3, 16 << 10 // each
	const patience = 5 * testserver.Patience    // each of them lists all others
	const ofSessions = 2 * 4                    // goroutines that each session keeps for its next requests
	dir := testserver.Path(t)
	// Long, since heartbeats wait behind all of these requests, and each waiter looks again once a timeout.
	mx := newMutex(t, connect(t, session.WithTimeout(time.Minute)), dir)
	must(t, mx.Lock(patient(t)))
	wait := func(n int) (end func()) {
		ctx, cancel := context.WithCancel(context.Background())
		results := make(chan error, n)
		for range n {
			go func() { results <- mx.Lock(ctx) }()
		}
		zktest.Eventually(t, patience, "all to stand in the queue", func() bool { return len(testserver.Children(t, dir)) == n+1 })
		return func() {
			cancel()
			for range n {
				wantErr(t, "a cancelled waiter", <-results, context.Canceled)
			}
			zktest.Eventually(t, patience, "their nodes to go", func() bool { return len(testserver.Children(t, dir)) == 1 })
		}
	}
	wait(1)() // for the memory that stays for good
	goroutines, memory := runtime.NumGoroutine(), inUse()
	end := wait(waiters)
	// Each watches its own node and up to two nodes ahead, whose contenders watch them too.
	zktest.Eventually(t, patience, "all to have set their watches", func() bool { return testserver.Watches(t) == waiters+1 })
	limit := float64(maxBytes)
	if raceEnabled {
		limit *= 2 // stack frames are larger; if each waiter kept the queue, that would be 90 KB
	}
	// The last requests may still be under way, and take goroutines and memory.
	zktest.Eventually(t, testserver.Patience, "the waiters to be cheap", func() bool {
		perGoroutine := float64(runtime.NumGoroutine()-goroutines) / float64(waiters)
		perByte := (float64(inUse()) - float64(memory)) / float64(waiters)
		t.Logf("each waiter: %.2f goroutines, %.0f bytes, of at most %d and %.0f", perGoroutine, perByte, maxGoroutines, limit)
		return perGoroutine <= maxGoroutines && perByte <= limit
	})
	end()
	must(t, mx.Unlock())
	zktest.Eventually(t, testserver.Patience, "no watch", func() bool { return testserver.Watches(t) == 0 })
	zktest.Eventually(t, testserver.Patience, "no goroutine", func() bool {
		return runtime.NumGoroutine() <= goroutines+ofSessions
	})
}

// inUse returns the bytes of heap and stacks in use.
func inUse() uint64 {
	runtime.GC()
	runtime.GC() // which also shrinks stacks that have been larger
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc + s.StackInuse
}
