package zklock_test

import (
	"context"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// All goroutines that wait have one node and two watches together: on that node and on the one ahead. When
// they have ended, nothing is left.
func TestLocalWaitersShareANode(t *testing.T) {
	const waiters = 1000
	dir := testserver.Path(t)
	ahead := newMutex(t, connect(t), dir)
	mx := newMutex(t, connect(t), dir, zklock.WithLocalHandover(10))
	must(t, ahead.Lock(patient(t)))
	warmUp(t, mx, dir)
	goroutines := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first := background(func() error { return mx.Lock(ctx) })
	testserver.WaitChildren(t, dir, 2)
	results := make(chan error, waiters)
	impatient, giveUp := context.WithCancel(ctx)
	defer giveUp()
	for range waiters {
		go func() { results <- mx.Lock(impatient) }()
	}
	zktest.Eventually(t, testserver.Patience, "watches on the node, twice on the one ahead", func() bool {
		return watchesUnder(t, testserver.Server(t), dir) == 3
	})
	before := testserver.Children(t, dir)
	giveUp()
	for range waiters {
		wantErr(t, "Lock", receive(t, "a cancelled waiter", results), context.Canceled)
	}
	if after := testserver.Children(t, dir); !same(before, after) || len(after) != 2 {
		t.Errorf("nodes %v, then %v", before, after)
	}
	must(t, ahead.Unlock())
	must(t, receive(t, "the one who stayed", first))
	must(t, mx.Unlock())
	testserver.WaitChildren(t, dir, 0)
	zktest.Eventually(t, testserver.Patience, "no watch", func() bool {
		return watchesUnder(t, testserver.Server(t), dir) == 0
	})
	waitGoroutines(t, goroutines, 2)
}

func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// Thousands of acquisitions, cancelled or not, leave nothing behind.
func TestLocalLeaksNothing(t *testing.T) {
	const goroutines = 20
	times := longtest.Pick(100, 300)
	dir := testserver.Path(t)
	m := connect(t)
	mx := newMutex(t, m, dir, zklock.WithLocalHandover(25))
	use := func() {
		var g errgroup.Group
		for range goroutines {
			g.Go(func() error {
				for n := range times {
					if err := giveUpEarly(context.Background(), mx, n); err != nil {
						return err
					}
					if err := mx.Do(context.Background(), func(context.Context) error { return nil }); err != nil {
						return err
					}
				}
				return nil
			})
		}
		must(t, g.Wait())
		testserver.WaitChildren(t, dir, 0)
		zktest.Eventually(t, testserver.Patience, "no watch", func() bool {
			return watchesUnder(t, testserver.Server(t), dir) == 0
		})
	}
	use() // takes the memory that stays for good
	count, bytes := runtime.NumGoroutine(), heap()
	use()
	waitGoroutines(t, count, 2)
	if testserver.Real(t) {
		zktest.Eventually(t, testserver.Patience, "the heap to be as before", func() bool { return heap() <= bytes+384<<10 })
	}
}
