package size

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

var pressFor = flag.Duration("press-for", time.Minute, "how long TestLargeWritesOfOthers lasts")

// Six other clients write 120 kB each, again and again, to a server whose limit of outstanding requests is 20. A session
// that holds a lock survives, and so does one that takes and gives back locks.
func TestLargeWritesOfOthers(t *testing.T) {
	longtest.Only(t)
	e := server(t, zktest.Property("globalOutstandingLimit", "20"))
	ctx, cancel := context.WithTimeout(t.Context(), *pressFor)
	defer cancel()
	idle := newUser(t, e.ConnectString(), session.WithTimeout(10*time.Second))
	busy := newUser(t, e.ConnectString(), session.WithTimeout(10*time.Second))
	var writes, locks atomic.Int64
	data := make([]byte, 120<<10)
	var all sync.WaitGroup
	for i := range 6 {
		c, path := rival(t, e.Addr(0)), fmt.Sprint("/large-", i)
		_, err := c.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		for range 4 { // 24 in process
			all.Go(func() {
				for ctx.Err() == nil {
					if _, err := c.Set(path, data, -1); err == nil {
						writes.Add(1)
					}
				}
			})
		}
	}
	idle.during("idle beside large writes", func(context.Context) {
		busy.during("busy beside large writes", func(inside context.Context) {
			for ctx.Err() == nil && busy.s.Err() == nil {
				must(t, take(inside, busy.Manager, "/taken"))
				locks.Add(1)
			}
		})
	})
	all.Wait()
	t.Logf("%v: %d writes of the others, %d locks", *pressFor, writes.Load(), locks.Load())
}
