package zklock_test

import (
	"context"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// TryLock of a held lock returns false and nil, and leaves neither node nor watch.
func TestTryLockHeld(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	m := connect(t)
	holder, err := newMutex(t, m, dir).Acquire(ctx)
	must(t, err)
	_, err = holder.Token(ctx) // sets the holder's own watch
	must(t, err)
	before := watchesUnder(t, testserver.Server(t), dir)
	if before != 1 {
		t.Fatalf("%d watches for one holder", before)
	}
	for name, mx := range map[string]*zklock.Mutex{
		"another process": newMutex(t, connect(t), dir),
		"same process":    newMutex(t, m, dir),
	} {
		for range 10 {
			got, err := mx.TryLock(ctx)
			if got || err != nil {
				t.Fatalf("%s: TryLock of a held lock: %v, %v", name, got, err)
			}
			// At once, since the next try must not find the node of this one.
			if n := len(testserver.Children(t, dir)); n != 1 {
				t.Fatalf("%s: %d nodes after a TryLock beside the holder", name, n)
			}
		}
		if mx.Held() {
			t.Errorf("%s: held after a TryLock that failed", name)
		}
		wantErr(t, name+": Unlock", mx.Unlock(), zklock.ErrNotHeld)
	}
	if n := watchesUnder(t, testserver.Server(t), dir); n != before {
		t.Errorf("%d watches, %d before", n, before)
	}
	must(t, holder.Release(ctx))
	zktest.Eventually(t, testserver.Patience, "no watch", func() bool {
		return watchesUnder(t, testserver.Server(t), dir) == 0
	})
}

// When many calls try a free lock at once, exactly one gets it. The first to enter sees no contender ahead, and
// all others see the first.
func TestTryLockRace(t *testing.T) {
	const racers, processes, rounds = 20, 4, 10
	ctx := patient(t)
	dir := testserver.Path(t)
	var locks []*zklock.Mutex
	for range processes {
		m := connect(t)
		for range racers / processes {
			locks = append(locks, newMutex(t, m, dir))
		}
	}
	for range rounds {
		winner := tryRound(ctx, t, locks)
		if n := len(testserver.Children(t, dir)); n != 1 {
			t.Fatalf("%d nodes after all but the winner gave up", n)
		}
		must(t, winner.Unlock())
	}
}

func tryRound(ctx context.Context, t *testing.T, locks []*zklock.Mutex) *zklock.Mutex {
	var winners []*zklock.Mutex
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := make(chan struct{})
	for _, mx := range locks {
		wg.Go(func() {
			<-start
			got, err := mx.TryLock(ctx)
			if err != nil {
				t.Error(err)
			}
			if got {
				mu.Lock()
				winners = append(winners, mx)
				mu.Unlock()
			}
		})
	}
	close(start)
	wg.Wait()
	if len(winners) != 1 {
		t.Fatalf("%d of %d racers won", len(winners), len(locks))
	}
	return winners[0]
}
