package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A MultiLock comes to a lock of which this process has the last hold of a turn. The delete of that turn's node makes room for
// the next one, as it does for a Lock of that mutex alone.
func TestMultiBehindTurnAtLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
		m := connect(session.WithNodeLimits(2, 1<<20))
		shared := newMutex(t, m, "/b", zklock.WithLocalHandover(1))
		must(t, shared.Lock(t.Context()))
		next := background(func() error { return shared.Lock(t.Context()) })
		synctest.Wait()
		must(t, shared.Unlock())
		must(t, <-next)
		both := newMulti(t, shared, newMutex(t, m, "/a"))
		locking := background(func() error { return both.Lock(t.Context()) })
		synctest.Wait()
		must(t, shared.Unlock())
		must(t, <-locking)
	})
}

// Goroutines take locks of all kinds at random, one by one and two at a time, keep places and give them back, while another
// process comes all the time. Half of the room is enough for what is in use and what is being given up, so no call is refused.
func TestRandomAtLimit(t *testing.T) {
	for _, workers := range []int{1, 3} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(workers, " goroutines, seed ", seed), func(t *testing.T) { randomAtLimit(t, workers, seed) })
		}
	}
}

func randomAtLimit(t *testing.T, workers int, seed uint64) {
	base := testserver.Path(t)
	m := testserver.Connect(t, testserver.Server(t).Addr(0), session.WithNodeLimits(2*3*workers, 1<<20), session.WithTimeout(20*time.Second))
	keep := zklock.WithLazyRelease([]time.Duration{2 * time.Millisecond, 50 * time.Millisecond, time.Minute}[seed])
	singles, multis := differentLocks(t, m, base, keep)
	singles = append(singles, multis...)
	others, _ := differentLocks(t, connect(t), base, keep)
	turns := make(chan struct{}, 1) // of the other process
	var intruder, all sync.WaitGroup
	intruder.Go(func() {
		rng := rand.New(rand.NewPCG(seed, 0))
		for range turns {
			takeOne(t, rng, others)
		}
	})
	for w := range workers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(w)+1))
			for range longtest.Pick(40, 2000) {
				select {
				case turns <- struct{}{}:
				default:
				}
				takeOne(t, rng, singles)
			}
		})
	}
	all.Wait()
	close(turns)
	intruder.Wait()
}

// randomLock takes a lock, or tries to, and returns what gives it back.
type randomLock func(ctx context.Context, try bool) (release func(context.Context) error, err error)

func asRandom[L interface{ Release(context.Context) error }](l interface {
	Acquire(context.Context) (L, error)
	TryAcquire(context.Context) (L, error)
}) randomLock {
	return func(ctx context.Context, try bool) (func(context.Context) error, error) {
		take := l.Acquire
		if try {
			take = l.TryAcquire
		}
		held, err := take(ctx)
		return held.Release, err
	}
}

func differentLocks(t *testing.T, m *session.Manager, base string, keep zklock.Option) (singles, multis []randomLock) {
	t.Helper()
	a, b := newMutex(t, m, base+"/a", keep), newMutex(t, m, base+"/b", keep, zklock.WithLocalHandover(2))
	c := newMutex(t, m, base+"/c")
	rw, err := rwlock.New(m, base+"/r", rwlock.WithLazyRelease(time.Minute))
	must(t, err)
	s, err := semaphore.New(m, base+"/s", 2)
	must(t, err)
	for _, one := range []zklock.ContextLocker{a, b, c, rw, rw.Reader(), s} {
		singles = append(singles, asRandom[*queue.Lease](one))
	}
	for _, two := range [][]zklock.ContextLocker{{a, b}, {a, c}, {c, s}, {a, rw}, {rw.Reader(), s}, {b, rw.Reader()}} {
		multis = append(multis, asRandom[*zklock.MultiLease](newMulti(t, two...)))
	}
	return singles, multis
}

// takeOne takes one of the locks, or tries to, and gives it back.
func takeOne(t *testing.T, rng *rand.Rand, locks []randomLock) {
	i := rng.IntN(len(locks))
	release, err := locks[i](patient(t), rng.IntN(3) == 0)
	if err == nil {
		err = release(patient(t))
	}
	if err != nil && !errors.Is(err, queue.ErrBusy) {
		t.Errorf("lock %d: %v", i, err)
	}
}
