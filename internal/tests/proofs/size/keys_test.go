package size

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	keysDir = "/keys"
	inARow  = 4 // uses of a key by a client, at the same time for the most part
)

// keyClient is a session that uses the locks of keys.
type keyClient struct {
	*zklock.Keyed
	s      *session.Session
	shares bool         // its goroutines share places
	shared atomic.Int64 // acquisitions by a place that another goroutine has had
}

func newKeyClient(t *testing.T, servers string, opts ...zklock.Option) *keyClient {
	t.Helper()
	c := &keyClient{shares: len(opts) > 0}
	m := testserver.Connect(t, servers, quiet, session.WithTrace(session.Trace{
		Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			return ctx, func(r session.AcquireResult) {
				if r.Err == nil && !r.Busy && r.Attempts == 0 {
					c.shared.Add(1)
				}
			}
		},
	}))
	c.s = testserver.Session(t, m)
	var err error
	c.Keyed, err = zklock.NewKeyed(m, keysDir, opts...)
	must(t, err)
	return c
}

// Three clients take the locks of thousands of keys, in all ways and for a minute. Goroutines of two of them share
// places. Nothing stays: no node, no directory and no watch on the server, no goroutine and no memory.
func TestKeys(t *testing.T) {
	longtest.InCI(t)
	e := server(t, zktest.ContainerCheck(time.Second)) // ZooKeeper's own default is a minute
	n, atLeast := longtest.Pick(500, 10_000), time.Duration(longtest.Pick(0, 60))*time.Second
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	looks := rival(t, e.Addr(0))
	clients := []*keyClient{
		newKeyClient(t, e.ConnectString()),
		newKeyClient(t, e.ConnectString(), zklock.WithLocalHandover(5)),
		newKeyClient(t, e.ConnectString(), zklock.WithLocalHandover(5), zklock.WithLazyRelease(time.Second)),
	}
	use := func(name string, keys int, atLeast time.Duration) {
		began, held := time.Now(), make([]atomic.Bool, keys)
		work := func(i int) func(context.Context) error {
			return func(context.Context) error {
				if !held[i].CompareAndSwap(false, true) {
					return errors.New("two have it")
				}
				runtime.Gosched()
				held[i].Store(false)
				return nil
			}
		}
		var all sync.WaitGroup
		for _, c := range clients {
			var uses atomic.Int64
			for range 40 {
				all.Go(func() {
					// The clients go through the keys in one order, so they meet at some.
					for at := int(uses.Add(1)) - 1; at < inARow*keys || time.Since(began) < atLeast; at = int(uses.Add(1)) - 1 {
						i := at / inARow % keys
						if err := useKey(ctx, c.Keyed, fmt.Sprint(name, "/", i), at, work(i)); err != nil {
							t.Errorf("key %d: %v", i, err)
							return
						}
					}
				})
			}
		}
		all.Wait()
		for i, c := range clients {
			if shared := c.shared.Swap(0); (shared > 0) != c.shares || c.s.Err() != nil {
				t.Errorf("client %d: %d places were handed on or kept; its session: %v", i, shared, c.s.Err())
			}
		}
		t.Logf("%s: %v", name, time.Since(began).Round(time.Millisecond))
		// A call that ends between the creates of a directory and of its node leaves a directory that has never had a child.
		// Servers before 3.10 remove it only after the next use. So all keys are used once more, to the end.
		each(t, 40, func(first int) (err error) {
			for i := first; i < keys && err == nil; i += 40 {
				err = useKey(ctx, clients[0].Keyed, fmt.Sprint(name, "/", i), 0, work(i))
			}
			return err
		})
		zktest.Eventually(t, patience, "no directory of a key", func() bool {
			there, _, err := looks.Exists(keysDir)
			return err == nil && !there
		})
	}
	left := func() (l leftovers) {
		runtime.GC()
		runtime.GC() // for objects that the first has only finalized
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		// It stops the world. NumGoroutine does not, and counts those too whose stacks the collector is about to free.
		running, _ := runtime.GoroutineProfile(make([]runtime.StackRecord, 1))
		return leftovers{
			metric(ctx, t, e, "zk_znode_count"), metric(ctx, t, e, "zk_ephemerals_count"), metric(ctx, t, e, "zk_watch_count"),
			running, int(s.HeapAlloc),
		}
	}
	use("receipt", min(n, 2000), 0) // takes what stays for good: room for as many at a time
	before := left()
	use("invoice", n, atLeast)
	var after leftovers
	defer func() { t.Logf("before: %+v; after: %+v", before, after) }()
	zktest.Eventually(t, testserver.Patience, "all to be as before", func() bool {
		after = left()
		return t.Failed() || after.nodes <= before.nodes && after.ephemerals <= before.ephemerals && after.watches <= before.watches &&
			after.goroutines <= before.goroutines+4*len(clients) && after.heap <= before.heap+3<<20 // a session keeps some for its next requests
	})
}

// leftovers is what may stay of keys that were used: on the server, and in this process.
type leftovers struct{ nodes, ephemerals, watches, goroutines, heap int }

// useKey uses the lock of a key in one of several ways. A lock that is busy is no error.
func useKey(ctx context.Context, k *zklock.Keyed, key string, way int, work func(context.Context) error) error {
	switch way % 5 {
	case 0:
		return k.Do(ctx, key, work)
	case 1:
		_, err := k.TryDo(ctx, key, work)
		return err
	case 2:
		l, err := k.Acquire(ctx, key)
		if err != nil {
			return err
		}
		return errors.Join(work(ctx), l.Release(ctx))
	case 3:
		err := k.Do(queue.WithMaxWait(ctx, time.Millisecond), key, work)
		if errors.Is(err, queue.ErrMaxWait) {
			return nil
		}
		return err
	}
	if err := k.Lock(ctx, key); err != nil {
		return err
	}
	return errors.Join(work(ctx), k.Unlock(key))
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
