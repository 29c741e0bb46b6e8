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

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/goroutines"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Three processes take the locks of thousands of keys, in all ways and for a minute. Nothing stays: no node, no directory and
// no watch on the server, and no goroutine and no memory in the processes.
func TestKeys(t *testing.T) {
	e := server(t, zktest.ContainerCheck(time.Second)) // ZooKeeper's own default is a minute
	n, atLeast := longtest.Pick(500, 10_000), time.Duration(longtest.Pick(0, 60))*time.Second
	c := rival(t, e.Addr(0))
	var users [3]*user
	var locks [3]*zklock.Keyed
	for i, opts := range [][]zklock.Option{
		nil, {zklock.WithLocalHandover(5)}, {zklock.WithLocalHandover(5), zklock.WithLazyRelease(time.Second)},
	} {
		var err error
		users[i] = newUser(t, e.ConnectString())
		locks[i], err = zklock.NewKeyed(users[i].Manager, "/keys", opts...)
		must(t, err)
	}
	left := func() (l leftovers) {
		l.nodes, l.ephemerals = metric(t.Context(), t, e, "zk_znode_count"), metric(t.Context(), t, e, "zk_ephemerals_count")
		l.watches, l.goroutines, l.heap = metric(t.Context(), t, e, "zk_watch_count"), goroutines.Count(), heapInUse()
		return l
	}
	useKeys(t, users, locks, "receipt", min(n, 2000), 0) // takes what stays for good: room for as many at a time
	gone(t, c)
	before := left()
	users[0].during(fmt.Sprint(n, " keys in 3 processes"), func(context.Context) {
		t.Log(useKeys(t, users, locks, "invoice", n, atLeast), " uses")
	})
	gone(t, c)
	var after leftovers
	defer func() { t.Logf("before: %+v; after: %+v", before, after) }()
	zktest.Eventually(t, testserver.Patience, "all to be as before", func() bool {
		after = left()
		// Each session keeps some goroutines for its next requests.
		return after.nodes <= before.nodes && after.ephemerals <= before.ephemerals && after.watches <= before.watches &&
			after.goroutines <= before.goroutines+4*len(users) && after.heap <= before.heap+1<<20
	})
}

// leftovers is what may stay of keys that were used.
type leftovers struct {
	nodes, ephemerals, watches int // on the server
	goroutines, heap           int // here
}

func heapInUse() int {
	runtime.GC()
	runtime.GC() // for objects that the first has only finalized
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc)
}

// gone waits until the server has removed the directories of all keys.
func gone(t *testing.T, c *zk.Conn) {
	t.Helper()
	zktest.Eventually(t, patience, "no directory of a key", func() bool {
		there, _, err := c.Exists("/keys")
		return err == nil && !there
	})
}

// useKeys has each user go through the keys, many at a time, for some time and at least once. It returns how often keys were
// used. The users go through them in one order, so they meet at some.
func useKeys(t *testing.T, users [3]*user, locks [3]*zklock.Keyed, what string, n int, atLeast time.Duration) (uses int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	inside, end := make([]atomic.Int32, n), time.Now().Add(atLeast)
	var counts [3]atomic.Int64
	var all sync.WaitGroup
	for i := range users {
		for range 40 {
			all.Go(func() {
				for {
					at := int(counts[i].Add(1)) - 1
					if at >= n && !time.Now().Before(end) {
						return
					}
					err := useKey(ctx, locks[i], fmt.Sprint(what, "/", at%n), at/3, func(context.Context) error {
						if inside[at%n].Add(1) != 1 {
							t.Errorf("two have key %d", at%n)
						}
						inside[at%n].Add(-1)
						return nil
					})
					if err != nil {
						t.Errorf("key %d: %v", at%n, err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	// A call that ends between the creates of a directory and of its node leaves a directory that has never had a child.
	// Servers before 3.10 remove it only after the next use. So all keys are used once more, to the end.
	var next atomic.Int64
	for range 40 {
		all.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(inside); n = int(next.Add(1)) - 1 {
				if err := useKey(ctx, locks[0], fmt.Sprint(what, "/", n), 0, func(context.Context) error { return nil }); err != nil {
					t.Errorf("key %d: %v", n, err)
				}
			}
		})
	}
	all.Wait()
	for i := range counts {
		uses += counts[i].Load()
	}
	return uses
}

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
		return pendingIsFine(errors.Join(work(ctx), l.Release(ctx)))
	case 3:
		err := k.Do(zklock.WithMaxWait(ctx, time.Millisecond), key, work)
		if errors.Is(err, queue.ErrMaxWait) {
			return nil
		}
		return err
	}
	if err := k.Lock(ctx, key); err != nil {
		return err
	}
	return pendingIsFine(errors.Join(work(ctx), k.Unlock(key)))
}

// pendingIsFine passes over a release that is certain, and not yet confirmed.
func pendingIsFine(err error) error {
	if errors.Is(err, queue.ErrReleasePending) {
		return nil
	}
	return err
}
