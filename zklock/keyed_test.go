package zklock_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/queue"
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
