package zklock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// heap returns the bytes in use after a garbage collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // for objects that the first has only finalized
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// Thousands of calls that are cancelled behind one long holder leave no node, no watch on the server, no
// goroutine and no memory.
func TestLeaksNothing(t *testing.T) {
	longtest.Only(t)
	const locks, tries, cycles, atOnce = 5000, 1000, 3000, 50
	const batch, heapSlack = 250, 384 << 10
	ctx := context.Background()
	dir := testserver.Path(t)
	holder, err := newMutex(t, connect(t), dir).Acquire(patient(t))
	must(t, err)
	_, err = holder.Token(patient(t)) // its own watch is set by now
	must(t, err)
	mx := newMutex(t, connect(t), dir)
	// The calls come in batches, and each batch ends with all requests answered. The runtime keeps the
	// memory of all goroutines it ever had, so their number must be the same before and after.
	inBatches := func(n int, f func() error) {
		t.Helper()
		for ; n > 0; n -= batch {
			var g errgroup.Group
			g.SetLimit(atOnce)
			for range min(n, batch) {
				g.Go(f)
			}
			must(t, g.Wait())
			testserver.WaitChildren(t, dir, 1)
			testserver.WaitChildren(t, dir+"-free", 0)
		}
	}
	giveUp := func(wait time.Duration) func() error {
		return func() error {
			ctx, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			if err := mx.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
				return errors.Join(errors.New("Lock behind a holder"), err)
			}
			return nil
		}
	}
	tryLock := func() error {
		if got, err := mx.TryLock(ctx); got || err != nil {
			return errors.Join(errors.New("TryLock behind a holder"), err)
		}
		return nil
	}
	free := newMutex(t, connect(t), dir+"-free")
	lockUnlock := func() error {
		l, err := free.Acquire(ctx)
		if err != nil {
			return err
		}
		_, err = l.Token(ctx) // so that there was a watch on its node
		return errors.Join(err, l.Release(ctx))
	}
	// Some memory and watches stay for good, so first go through everything once. The first call certainly
	// sets its watch on the holder's node. That watch outlives the holder, since watches cannot be removed,
	// and all later calls share it.
	waiter, giveUpWaiting := context.WithCancel(ctx)
	defer giveUpWaiting()
	waiting := background(func() error { return mx.Lock(waiter) })
	zktest.Eventually(t, testserver.Patience, "its own watch and that on the holder's node", func() bool {
		return watchesUnder(t, testserver.Server(t), dir) == 3
	})
	giveUpWaiting()
	wantErr(t, "Lock", receive(t, "the first waiter", waiting), context.Canceled)
	inBatches(atOnce, giveUp(5*time.Millisecond))
	inBatches(2*batch, giveUp(5*time.Millisecond))
	inBatches(batch, tryLock)
	inBatches(2*batch, lockUnlock)
	goroutines, bytes := runtime.NumGoroutine(), heap()
	watches := watchesUnder(t, testserver.Server(t), dir)
	if watches != 2 { // the holder's own, and that of the process of the waiters
		t.Errorf("%d watches before", watches)
	}

	start := time.Now()
	inBatches(locks, giveUp(5*time.Millisecond))
	inBatches(tries, tryLock)
	inBatches(cycles, lockUnlock)
	t.Logf("%d acquisitions in %v", locks+tries+cycles, time.Since(start))

	zktest.Eventually(t, testserver.Patience, "the server's watches to be as before", func() bool {
		return watchesUnder(t, testserver.Server(t), dir) == watches
	})
	waitGoroutines(t, goroutines, 2)
	var after uint64
	defer func() { t.Logf("heap %d before, %d after", bytes, after) }()
	if testserver.Real(t) { // the server in this process remembers requests
		zktest.Eventually(t, testserver.Patience, "the heap to be as before", func() bool {
			after = heap()
			return after <= bytes+heapSlack
		})
	}
	must(t, holder.Release(patient(t)))
	zktest.Eventually(t, testserver.Patience, "no watch", func() bool {
		return watchesUnder(t, testserver.Server(t), dir) == 0
	})
}

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
