package zklock_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Many goroutines that wait for one Mutex cost little, and nothing after they are cancelled.
func TestWaitersAreCheap(t *testing.T) {
	waiters := longtest.Pick(300, 1000)
	const maxGoroutines, maxBytes = 3, 16 << 10 // each
	const patience = 5 * testserver.Patience    // each of them lists all others
	dir := testserver.Path(t)
	// Long, since heartbeats wait behind all of these requests, and each waiter looks again once a timeout.
	mx := newMutex(t, connect(t, session.WithTimeout(time.Minute)), dir)
	must(t, mx.Lock(patient(t)))
	warmUp(t, mx, dir)
	goroutines, memory := runtime.NumGoroutine(), inUse()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	results := make(chan error, waiters)
	for range waiters {
		go func() { results <- mx.Lock(ctx) }()
	}
	zktest.Eventually(t, patience, "all to stand in the queue", func() bool {
		return len(testserver.Children(t, dir)) == waiters+1
	})
	// Each watches its own node and up to two nodes ahead, whose contenders watch them too.
	zktest.Eventually(t, patience, "all to have set their watches", func() bool {
		return watchesUnder(t, testserver.Server(t), dir) == waiters+1
	})
	limit := float64(maxBytes)
	if raceEnabled {
		limit *= 2 // stack frames are larger; if each waiter kept the queue, that would be 90 KB
	}
	var perGoroutine, perByte float64
	defer func() {
		t.Logf("each waiter: %.2f goroutines, %.0f bytes, of at most %d and %.0f (race detector: %v)",
			perGoroutine, perByte, maxGoroutines, limit, raceEnabled)
	}()
	// The last requests may still be under way, and take goroutines and memory.
	zktest.Eventually(t, testserver.Patience, "the waiters to be cheap", func() bool {
		perGoroutine = float64(runtime.NumGoroutine()-goroutines) / float64(waiters)
		if perGoroutine > maxGoroutines {
			return false
		}
		perByte = (float64(inUse()) - float64(memory)) / float64(waiters)
		return perByte <= limit
	})

	cancel()
	for range waiters {
		wantErr(t, "Lock", receive(t, "a cancelled waiter", results), context.Canceled)
	}
	zktest.Eventually(t, patience, "their nodes to go", func() bool { return len(testserver.Children(t, dir)) == 1 })
	must(t, mx.Unlock())
	zktest.Eventually(t, testserver.Patience, "no watch", func() bool {
		return watchesUnder(t, testserver.Server(t), dir) == 0
	})
	waitGoroutines(t, goroutines, 2)
}

// warmUp waits for a lock once, for the memory that stays for good.
func warmUp(t *testing.T, mx *zklock.Mutex, dir string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := background(func() error { return mx.Lock(ctx) })
	testserver.WaitChildren(t, dir, 2)
	cancel()
	wantErr(t, "Lock", receive(t, "a cancelled waiter", done), context.Canceled)
	testserver.WaitChildren(t, dir, 1)
}

// inUse returns the bytes of heap and stacks in use.
func inUse() uint64 {
	runtime.GC()
	runtime.GC() // which also shrinks stacks that have been larger
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc + s.StackInuse
}
