package zklock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// twoKeyed are the locks of two processes.
type twoKeyed struct {
	*world
	m     *session.Manager
	k     *zklock.Keyed // of m
	rival *zklock.Keyed // of another process, without options
}

func (w twoKeyed) wantKeys(when string, k *zklock.Keyed, n int) {
	w.T.Helper()
	synctest.Wait()
	if in := zklock.KeysInUse(k); in != n {
		w.Errorf("%s: %d keys in use, want %d", when, in, n)
	}
}

// names wants an error that names the lock.
func (w twoKeyed) names(what string, err, want error) {
	w.T.Helper()
	if w.Want(what, err, want); err != nil && !strings.Contains(err.Error(), w.k.Path("a")) {
		w.Errorf("%s: the error does not name the lock: %v", what, err)
	}
}

// A key is in use for as long as its object matters, and forgotten after that.
func TestKeyedForgets(t *testing.T) {
	handedOver, kept := zklock.WithLocalHandover(5), zklock.WithLazyRelease(5*time.Second)
	lock := func(w twoKeyed) { w.Must(w.k.Lock(w.Context(), "a")) }
	do := func(w twoKeyed) { w.Must(w.k.Do(w.Context(), "a", nothing)) }
	var lease *queue.Lease
	acquire := func(w twoKeyed) {
		var err error
		lease, err = w.k.Acquire(w.Context(), "a")
		w.Must(err)
	}
	release := func(w twoKeyed) { w.Must(lease.Release(w.Context())) }
	later := func(w twoKeyed) { w.Pass(5 * time.Second) }
	var waiter *bubble.Call
	for _, c := range []struct {
		name  string
		opts  []zklock.Option
		use   func(w twoKeyed)
		inUse int // after that
		last  func(w twoKeyed)
	}{
		{"Do", nil, func(w twoKeyed) {
			w.Must(w.k.Do(w.Context(), "a", func(context.Context) error {
				w.wantKeys("in Do", w.k, 1)
				return nil
			}))
		}, 0, nil},
		{"panic in Do, and Goexit in TryDo", nil, func(w twoKeyed) {
			func() {
				defer func() { _ = recover() }()
				_ = w.k.Do(w.Context(), "a", func(context.Context) error { panic("the work fails") })
			}()
			_ = w.Go(func() error {
				_, _ = w.k.TryDo(w.Context(), "a", func(context.Context) error { runtime.Goexit(); return nil })
				return nil
			})
		}, 0, nil},
		{"busy, cancelled, and not held", nil, func(w twoKeyed) {
			w.Must(w.rival.Lock(w.Context(), "a"))
			_, err := w.k.TryAcquire(w.Context(), "a")
			w.names("TryAcquire", err, queue.ErrBusy)
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			defer cancel()
			w.names("Lock", w.k.Lock(ctx, "a"), context.DeadlineExceeded)
			w.names("Unlock", w.k.Unlock("a"), zklock.ErrNotHeld)
			w.Must(w.rival.Unlock("a"))
		}, 0, nil},
		{"Lock", nil, lock, 1, func(w twoKeyed) { w.Must(w.k.Unlock("a")) }},
		{"a hold that is lost, and a waiter", nil, func(w twoKeyed) {
			lock(w)
			waiter = w.Go(func() error { return w.k.Do(w.Context(), "a", nothing) })
			w.Lose(w.m)
		}, 1, func(w twoKeyed) {
			w.Want("Unlock", w.k.Unlock("a"), session.ErrLost)
			w.Must(waiter.Err())
		}},
		{"Acquire", nil, acquire, 0, release}, // there is nothing to share with it
		{"Acquire of a turn", []zklock.Option{handedOver}, acquire, 1, release},
		{"Acquire of a turn that is lost", []zklock.Option{handedOver}, func(w twoKeyed) { acquire(w); w.Lose(w.m) }, 0, nil},
		{"a kept place", []zklock.Option{kept}, do, 1, later},
		// What is remembered is that the next place is not worth keeping.
		{"a kept place that another takes", []zklock.Option{kept}, func(w twoKeyed) {
			do(w)
			w.Must(w.rival.Do(w.Context(), "a", nothing))
		}, 1, later},
		{"a kept place that is lost", []zklock.Option{kept}, func(w twoKeyed) { do(w); w.Lose(w.m); later(w) }, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, func(w *world) {
				m := w.Connect()
				two := twoKeyed{w, m, newKeyed(t, m, "/keys", c.opts...), newKeyed(t, w.Connect(), "/keys")}
				c.use(two)
				two.wantKeys("after the use", two.k, c.inUse)
				if c.last != nil {
					c.last(two)
					two.wantKeys("in the end", two.k, 0)
				}
				two.wantKeys("in the other process", two.rival, 0)
			})
		})
	}
}

// Goroutines take locks of all kinds at random, one by one and two at a time, keep places and give them back, while another
// process comes all the time. Half of the room is enough for what is in use and what is being given up, so no call is refused.
func TestRandomAtLimit(t *testing.T) {
	for _, workers := range []int{1, 3} {
		for seed, keeps := range []time.Duration{2 * time.Millisecond, 50 * time.Millisecond, time.Minute} {
			run(t, func(w *world) {
				keep := zklock.WithLazyRelease(keeps)
				singles, multis := differentLocks(t, w.Connect(session.WithNodeLimits(2*3*workers, 1<<20)), keep)
				others, _ := differentLocks(t, w.Connect(), keep)
				work := func(locks []randomLock, worker int) {
					rng := rand.New(rand.NewPCG(uint64(seed), uint64(worker)))
					for range longtest.Pick(40, 2000) {
						release, err := locks[rng.IntN(len(locks))](w.Context(), rng.IntN(3) == 0)
						if err == nil {
							err = release(w.Context())
						}
						if err != nil && !errors.Is(err, queue.ErrBusy) {
							t.Errorf("%d workers, seed %d: %v", workers, seed, err)
						}
						time.Sleep(time.Duration(rng.Int64N(int64(5 * time.Millisecond))))
					}
				}
				w.Delay(time.Millisecond)
				var all sync.WaitGroup
				all.Go(func() { work(others, 0) })
				for i := range workers {
					all.Go(func() { work(append(singles, multis...), i+1) })
				}
				all.Wait()
				w.Delay(0)
			})
		}
	}
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

func differentLocks(t *testing.T, m *session.Manager, keep zklock.Option) (singles, multis []randomLock) {
	t.Helper()
	a, b, c := newMutex(t, m, "/a", keep), newMutex(t, m, "/b", keep, zklock.WithLocalHandover(2)), newMutex(t, m, "/c")
	rw, s := newRW(t, m, "/r", rwlock.WithLazyRelease(time.Minute)), newSem(t, m, "/s", 2)
	for _, one := range []zklock.ContextLocker{a, b, c, rw, rw.Reader(), s} {
		singles = append(singles, asRandom[*queue.Lease](one))
	}
	for _, two := range [][]zklock.ContextLocker{{a, b}, {a, c}, {c, s}, {a, rw}, {rw.Reader(), s}, {b, rw.Reader()}} {
		multis = append(multis, asRandom[*zklock.MultiLease](newMulti(t, two...)))
	}
	return singles, multis
}
