package zklock_test

import (
	"context"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Two processes that always want the lock share it. A node is held n+1 times at most, so the other process gets the lock then
// if it has a node by that time, and neither process starves.
func TestLocalShare(t *testing.T) {
	const handovers, goroutines, holds = 4, 40, 1000
	ctx, cancel := context.WithTimeout(context.Background(), 5*testserver.Patience)
	defer cancel()
	dir := testserver.Path(t)
	gate, err := newMutex(t, connect(t), dir).Acquire(ctx)
	must(t, err)
	var mu sync.Mutex
	var shares [2]int             // holds of each process
	turns := make(map[string]int) // holds of each node
	enough := func() bool { return shares[0]+shares[1] >= holds }
	var g errgroup.Group
	for i := range 2 {
		mx := newMutex(t, connect(t, session.WithTimeout(faultTimeout)), dir, zklock.WithLocalHandover(handovers))
		for range goroutines {
			g.Go(func() error {
				for done := false; !done; {
					if err := mx.Do(ctx, func(inside context.Context) error {
						lease, _ := queue.LeaseFrom(inside)
						mu.Lock()
						defer mu.Unlock()
						if done = enough(); !done { // after that some goroutines end
							shares[i]++
							turns[lease.Path()]++
						}
						return nil
					}); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	testserver.WaitChildren(t, dir, 3) // each process has one node, behind that of the gate
	must(t, gate.Release(ctx))
	must(t, g.Wait())
	for node, n := range turns {
		if n > handovers+1 {
			t.Errorf("%s was held %d times, want at most %d", node, n, handovers+1)
		}
	}
	if shares[0] < holds/4 || shares[1] < holds/4 {
		t.Errorf("shares of %v", shares)
	}
	t.Logf("shares of %v", shares)
	testserver.WaitChildren(t, dir, 0)
}
