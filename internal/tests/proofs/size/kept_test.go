package size

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/goroutines"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A process keeps thousands of places, and its connection breaks. All of them are given up, by one goroutine more for each at most.
func TestKeptPlacesAtTheEndOfAConnection(t *testing.T) {
	e := zktest.StartReal(t, zktest.TickTime(4*time.Second)) // which grants a timeout of 80 s
	proxy := zktest.StartProxy(t, e.Addr(0))
	// A place is kept for a timeout, and for a minute at most. On a busy machine all of this can take most of that.
	n := longtest.Pick(1000, 8000)
	u := newUser(t, proxy.Addr(), session.WithTimeout(70*time.Second), session.WithNodeLimits(2*n+2, 1<<20)) // half of them may be kept
	u.during(fmt.Sprint(n, " kept places"), func(ctx context.Context) {
		each(t, n, func(i int) error {
			mx, err := zklock.New(u.Manager, fmt.Sprint("/kept/", i), zklock.WithLazyRelease(time.Minute))
			if err != nil {
				return err
			}
			return mx.Do(ctx, func(context.Context) error { return nil })
		})
		if have := metric(ctx, t, e, "zk_ephemerals_count"); have != n+1 {
			t.Fatalf("%d nodes, want %d that are kept and one that is held", have, n)
		}
		for metric(ctx, t, e, "zk_watch_count") < 2*n { // each has one on its node and one on the directory
			runtime.Gosched()
		}
		before, most := goroutines.Count(), 0
		proxy.Disconnect()
		for metric(ctx, t, e, "zk_ephemerals_count") > 1 {
			if ctx.Err() != nil {
				t.Fatal("the places stay")
			}
			for range 100 {
				most = max(most, goroutines.Count()-before)
				runtime.Gosched()
			}
		}
		t.Logf("at most %d goroutines more than before", most)
		if most > n { // the event of a watch has a goroutine of its own, for a moment
			t.Errorf("%d goroutines more than before, for %d places", most, n)
		}
	})
}

// metric returns a number that a server tells of itself.
func metric(ctx context.Context, t *testing.T, e *zktest.Ensemble, name string) (n int) {
	t.Helper()
	metrics, err := e.Metrics(ctx, 0)
	must(t, err)
	_, err = fmt.Sscan(metrics[name], &n)
	must(t, err)
	return n
}
