package databases

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/fence"
)

// lock is a lock whose holder can lose it without noticing. It has a hold in free while nobody holds it.
type lock struct {
	free    chan *hold
	waiting atomic.Int64
}

// hold is one hold of a lock, with a token that is higher than all before.
type hold struct {
	*lock
	token   int64
	begins  chan struct{} // closed when the holder is about to begin its transaction
	claimed chan struct{} // closed when it has claimed, or has failed
}

func (l *lock) pass(token int64) *hold {
	h := &hold{l, token, make(chan struct{}), make(chan struct{})}
	l.free <- h
	return h
}

func (l *lock) acquire(ctx context.Context) (*hold, error) {
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	select {
	case h := <-l.free:
		return h, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// work takes one away. In the middle of most deductions the lock expires, and the work goes on when the next holder is
// as far as it can be: it has claimed, or is about to and has to wait.
func (l *lock) work(ctx context.Context, w *world) (left int, err error) {
	h, err := l.acquire(ctx)
	if err != nil {
		return 0, err
	}
	pass := sync.OnceValue(func() *hold { return l.pass(h.token + 1) })
	begins := sync.OnceFunc(func() { close(h.begins) })
	claimed := sync.OnceFunc(func() { close(h.claimed) })
	defer pass()
	defer begins()
	defer claimed()
	steps := []string{"begins", "claimed", "read", "written", ""}
	expiry := steps[rand.IntN(len(steps))]
	return w.deduction(ctx, h.token, func(step string) {
		begins()
		if step == "claimed" {
			claimed()
		}
		if step != expiry || l.waiting.Load() == 0 {
			return
		}
		next := pass()
		reached := next.begins
		if step == "begins" {
			reached = next.claimed
		}
		select {
		case <-reached:
		case <-ctx.Done():
		}
	})
}

// Twenty workers take one away again and again, and lose the lock in the middle while they go on. No deduction is lost:
// each has seen another balance, and the sum is right.
func TestWorkers(t *testing.T) {
	const workers, each = 20, 5
	worlds(t, func(w *world) {
		w.open(workers * each)
		ctx, cancel := context.WithCancel(within(w.T))
		defer cancel()
		l := &lock{free: make(chan *hold, 1)}
		l.pass(1)
		var mu sync.Mutex
		var seen []int
		stale := 0
		count := func(left int, err error) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				seen = append(seen, left)
			case errors.Is(err, fence.ErrStale):
				stale++
			default:
				return err
			}
			return nil
		}
		g, ctx := errgroup.WithContext(ctx)
		for range workers {
			g.Go(func() error {
				for done := 0; done < each; {
					left, err := l.work(ctx, w)
					if err == nil {
						done++
					}
					if err := count(left, err); err != nil {
						return err
					}
				}
				return nil
			})
		}
		must(w.T, g.Wait())
		w.want(0)
		slices.Sort(seen)
		for i, left := range seen {
			if left != i {
				w.Fatalf("the deductions left %v", seen)
			}
		}
		if stale == 0 {
			w.Error("no former holder was refused")
		}
		w.Logf("%d deductions, and %d claims refused", len(seen), stale)
	})
}
