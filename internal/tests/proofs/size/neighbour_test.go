package size

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// Another client reads one small node again and again. Its median time is logged, alone and beside a burst of a thousand
// locks of one session.
func TestReadsBesideLocks(t *testing.T) {
	longtest.Only(t)
	e := server(t)
	reader := rival(t, e.Addr(0))
	_, err := reader.Create("/read", []byte("small"), 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	u := newUser(t, e.ConnectString())
	median := func(ctx context.Context) time.Duration {
		var all []time.Duration
		for len(all) == 0 || ctx.Err() == nil {
			began := time.Now()
			_, _, err := reader.Get("/read")
			must(t, err)
			all = append(all, time.Since(began))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		alone := median(ctx)
		cancel()
		ctx, cancel = context.WithCancel(t.Context())
		u.during("1000 locks at once, ten times each", func(inside context.Context) {
			var beside time.Duration
			var reads sync.WaitGroup
			reads.Go(func() { beside = median(ctx) })
			each(t, 1000, func(i int) error {
				for range 10 {
					if err := take(inside, u.Manager, fmt.Sprint("/burst/", i)); err != nil {
						return err
					}
				}
				return nil
			})
			cancel()
			reads.Wait()
			t.Logf("a read takes %v alone and %v beside the locks: %.2f times as long", alone, beside, float64(beside)/float64(alone))
		})
	}
}
