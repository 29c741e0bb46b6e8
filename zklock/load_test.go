package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// One manager holds as many locks as its session may own nodes. A further call is refused before it creates
// a node. No held lock is lost by that, and each release makes room for another lock.
func TestManyHeld(t *testing.T) {
	const locks, atOnce, refused = 200, 32, 20
	ctx, cancel := context.WithTimeout(context.Background(), 5*testserver.Patience)
	defer cancel()
	dir := testserver.Path(t)
	m := connect(t, session.WithTimeout(time.Minute), session.WithNodeLimits(locks, 1<<20))
	ask(t, m)
	goroutines := runtime.NumGoroutine()
	leases := make([]*queue.Lease, locks)
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i := range leases {
		mx := newMutex(t, m, fmt.Sprintf("%s/%d", dir, i))
		g.Go(func() (err error) {
			leases[i], err = mx.Acquire(ctx)
			return err
		})
	}
	must(t, g.Wait())

	beyond := newMutex(t, m, dir+"/beyond")
	for i := range refused {
		g.Go(func() error {
			var err error
			switch i % 3 {
			case 0:
				err = beyond.Lock(ctx)
			case 1:
				_, err = beyond.TryLock(ctx)
			default:
				_, err = beyond.Acquire(ctx)
			}
			if !errors.Is(err, session.ErrTooManyNodes) {
				return fmt.Errorf("a lock beyond the limit: %w", errors.Join(errors.New("not refused"), err))
			}
			return nil
		})
	}
	must(t, g.Wait())
	if there, _, err := testserver.Admin(t).Exists(beyond.Path()); there || err != nil {
		t.Errorf("what was refused has made %s (%v)", beyond.Path(), err)
	}
	for _, l := range leases {
		must(t, l.Err())
		if n := len(testserver.Children(t, path.Dir(l.Path()))); n != 1 {
			t.Errorf("%d nodes in %s", n, path.Dir(l.Path()))
		}
	}
	must(t, leases[0].Release(ctx))
	must(t, beyond.Lock(ctx))
	_, err := newMutex(t, m, dir+"/another").Acquire(ctx)
	wantErr(t, "the session is full again", err, session.ErrTooManyNodes)

	for _, l := range leases[1:] {
		g.Go(func() error { return l.Release(ctx) })
	}
	must(t, errors.Join(g.Wait(), beyond.Unlock()))
	zktest.Eventually(t, testserver.Patience, "no watch", func() bool {
		return watchesUnder(t, testserver.Server(t), dir) == 0
	})
	waitGoroutines(t, goroutines, 1)
}

// Hundreds of calls wait for a few locks through many managers. Some are cancelled. All others get their
// lock, one holder at a time, and nothing is left behind.
func TestManyWait(t *testing.T) {
	const managers, locks, waiters, givesUp = 10, 10, 500, 5 // one in five is cancelled
	ctx, cancel := context.WithTimeout(context.Background(), 10*testserver.Patience)
	defer cancel()
	dir := testserver.Path(t)
	lockPath := func(i int) string { return fmt.Sprintf("%s/%d", dir, i) }
	long := session.WithTimeout(time.Minute)
	holder := connect(t, long)
	var ms []*session.Manager
	for range managers {
		ms = append(ms, connect(t, long))
	}
	ask(t, append(ms, holder)...)
	goroutines := runtime.NumGoroutine()
	var held [locks]*queue.Lease
	for i := range held {
		var err error
		held[i], err = newMutex(t, holder, lockPath(i)).Acquire(ctx)
		must(t, err)
	}

	var inside [locks]protected
	var waiting, impatient errgroup.Group
	impatience, giveUp := context.WithCancel(ctx)
	defer giveUp()
	for n := range waiters {
		i := n % locks
		mx := newMutex(t, ms[n/locks%managers], lockPath(i))
		if n/locks%givesUp == 0 {
			impatient.Go(func() error { return mustGiveUp(impatience, mx) })
			continue
		}
		waiting.Go(func() error {
			l, err := mx.Acquire(ctx)
			if err != nil {
				return err
			}
			inside[i].use(t, -1)
			return l.Release(ctx)
		})
	}
	for i := range held {
		zktest.Eventually(t, 5*testserver.Patience, "all to stand in the queue", func() bool {
			return len(testserver.Children(t, lockPath(i))) == waiters/locks+1
		})
	}
	giveUp()
	must(t, impatient.Wait())
	for _, l := range held {
		must(t, l.Release(ctx))
	}
	must(t, waiting.Wait())
	for i := range held {
		if n := inside[i].counter.Load(); n != waiters/locks*(givesUp-1)/givesUp {
			t.Errorf("lock %d: %d were inside", i, n)
		}
		testserver.WaitChildren(t, lockPath(i), 0)
	}
	zktest.Eventually(t, testserver.Patience, "no watch", func() bool {
		return watchesUnder(t, testserver.Server(t), dir) == 0
	})
	waitGoroutines(t, goroutines, managers+1)
}

// ask sends a request through each manager, after which all of its goroutines run.
func ask(t *testing.T, ms ...*session.Manager) {
	t.Helper()
	for _, m := range ms {
		_, err := testserver.Session(t, m).Exists(patient(t), "/")
		must(t, err)
	}
}

// mustGiveUp waits for a lock that is not granted before ctx ends.
func mustGiveUp(ctx context.Context, mx *zklock.Mutex) error {
	if err := mx.Lock(ctx); !errors.Is(err, context.Canceled) {
		return errors.Join(errors.New("Lock behind a holder"), err)
	}
	return nil
}
