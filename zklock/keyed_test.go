package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

const keysDir = "/locks/invoices"

func newKeyed(tb testing.TB, m *session.Manager, dir string, opts ...zklock.Option) *zklock.Keyed {
	tb.Helper()
	k, err := zklock.NewKeyed(m, dir, opts...)
	must(tb, err)
	return k
}

func wantKeys(t *testing.T, when string, k *zklock.Keyed, n int) {
	t.Helper()
	synctest.Wait()
	if in := zklock.KeysInUse(k); in != n {
		t.Errorf("%s: %d keys in use, want %d", when, in, n)
	}
}

func nothing(context.Context) error { return nil }

// keyedWorld is two processes, in virtual time.
type keyedWorld struct {
	t      *testing.T
	server *zktest.Server
	m      *session.Manager
	k      *zklock.Keyed // of m
	rival  *zklock.Keyed // of another process, without options
}

func (w keyedWorld) expire() {
	w.t.Helper()
	s, err := w.m.Session(w.t.Context())
	must(w.t, err)
	must(w.t, w.server.Expire(w.t.Context(), s.ID()))
	time.Sleep(time.Minute)
}

// keyUses are uses of the key "a". used is how many keys are in use in the end, before the last step.
var keyUses = []struct {
	name  string
	opts  []zklock.Option
	use   func(w keyedWorld) (last func())
	inUse int
}{
	{name: "Do", use: func(w keyedWorld) func() {
		must(w.t, w.k.Do(w.t.Context(), "a", func(context.Context) error {
			wantKeys(w.t, "in Do", w.k, 1)
			return nil
		}))
		return nil
	}},
	{name: "panic in Do", use: func(w keyedWorld) func() {
		defer func() { _ = recover() }()
		_ = w.k.Do(w.t.Context(), "a", func(context.Context) error { panic("the work fails") })
		return nil
	}},
	{name: "Goexit in TryDo", use: func(w keyedWorld) func() {
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = w.k.TryDo(w.t.Context(), "a", func(context.Context) error { runtime.Goexit(); return nil })
		}()
		<-over
		return nil
	}},
	{name: "Do of nil", use: func(w keyedWorld) func() {
		wantErr(w.t, "Do of nil", w.k.Do(w.t.Context(), "a", nil), session.ErrInvalid)
		_, err := w.k.TryDo(w.t.Context(), "a", nil)
		wantErr(w.t, "TryDo of nil", err, session.ErrInvalid)
		return nil
	}},
	{name: "busy and cancelled", use: func(w keyedWorld) func() {
		must(w.t, w.rival.Lock(w.t.Context(), "a"))
		if ran, err := w.k.TryDo(w.t.Context(), "a", nothing); ran || err != nil {
			w.t.Errorf("TryDo of a held key: %v, %v", ran, err)
		}
		_, err := w.k.TryAcquire(w.t.Context(), "a")
		wantErr(w.t, "TryAcquire", err, queue.ErrBusy)
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		err = w.k.Lock(ctx, "a")
		wantErr(w.t, "Lock", err, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), keysDir+"/a") {
			w.t.Errorf("the error does not name the lock: %v", err)
		}
		must(w.t, w.rival.Unlock("a"))
		return nil
	}},
	{name: "looks", use: func(w keyedWorld) func() {
		if w.k.Held("a") {
			w.t.Error("held")
		}
		_, _ = w.k.Contenders(w.t.Context(), "a")
		err := w.k.Unlock("a")
		wantErr(w.t, "Unlock", err, zklock.ErrNotHeld)
		if !strings.Contains(err.Error(), keysDir+"/a") {
			w.t.Errorf("the error does not name the lock: %v", err)
		}
		return nil
	}},
	{name: "Lock", inUse: 1, use: func(w keyedWorld) func() {
		must(w.t, w.k.Lock(w.t.Context(), "a"))
		return func() { must(w.t, w.k.Unlock("a")) }
	}},
	{name: "a hold that is lost", inUse: 1, use: func(w keyedWorld) func() {
		must(w.t, w.k.Lock(w.t.Context(), "a"))
		w.expire()
		if w.k.Held("a") {
			w.t.Error("held after the loss")
		}
		return func() { wantErr(w.t, "Unlock", w.k.Unlock("a"), session.ErrLost) }
	}},
	{name: "a hold that is lost, and a waiter", inUse: 1, use: func(w keyedWorld) func() {
		must(w.t, w.k.Lock(w.t.Context(), "a"))
		waiter := background(func() error { return w.k.Do(w.t.Context(), "a", nothing) })
		w.expire()
		must(w.t, w.rival.Do(w.t.Context(), "a", nothing)) // nobody of this process keeps it out
		pending(w.t, "the waiter", waiter)
		return func() {
			wantErr(w.t, "Unlock", w.k.Unlock("a"), session.ErrLost)
			must(w.t, receive(w.t, "the waiter", waiter))
		}
	}},
	{name: "Acquire", use: func(w keyedWorld) func() {
		l, err := w.k.Acquire(w.t.Context(), "a")
		must(w.t, err)
		return func() { must(w.t, l.Release(w.t.Context())) } // there is nothing to share with it
	}},
	{name: "Acquire of a turn", opts: []zklock.Option{zklock.WithLocalHandover(5)}, inUse: 1, use: func(w keyedWorld) func() {
		l, err := w.k.Acquire(w.t.Context(), "a")
		must(w.t, err)
		return func() { must(w.t, l.Release(w.t.Context())) }
	}},
	{name: "Acquire of a turn that is lost", opts: []zklock.Option{zklock.WithLocalHandover(5)}, use: func(w keyedWorld) func() {
		l, err := w.k.Acquire(w.t.Context(), "a")
		must(w.t, err)
		w.expire()
		return func() { wantErr(w.t, "Release", l.Release(w.t.Context()), session.ErrLost) }
	}},
	{name: "a kept place", opts: []zklock.Option{zklock.WithLazyRelease(5 * time.Second)}, inUse: 1, use: func(w keyedWorld) func() {
		must(w.t, w.k.Do(w.t.Context(), "a", nothing))
		return func() { time.Sleep(5 * time.Second) }
	}},
	{name: "a kept place that another takes", opts: []zklock.Option{zklock.WithLazyRelease(5 * time.Second)}, inUse: 1, use: func(w keyedWorld) func() {
		must(w.t, w.k.Do(w.t.Context(), "a", nothing))
		must(w.t, w.rival.Do(w.t.Context(), "a", nothing))
		return func() { time.Sleep(5 * time.Second) } // remembered: the next place is not worth keeping
	}},
	{name: "a kept place that is used all the time", opts: []zklock.Option{zklock.WithLazyRelease(time.Second)}, inUse: 1, use: func(w keyedWorld) func() {
		for range 15 {
			must(w.t, w.k.Do(w.t.Context(), "a", nothing))
			time.Sleep(900 * time.Millisecond)
		}
		return func() { time.Sleep(time.Second) }
	}},
	{name: "a kept place that is lost", opts: []zklock.Option{zklock.WithLazyRelease(5 * time.Second)}, use: func(w keyedWorld) func() {
		must(w.t, w.k.Do(w.t.Context(), "a", nothing))
		w.expire()
		return nil
	}},
	{name: "a kept place of a manager that is closed", opts: []zklock.Option{zklock.WithLazyRelease(5 * time.Second)}, use: func(w keyedWorld) func() {
		must(w.t, w.k.Do(w.t.Context(), "a", nothing))
		must(w.t, w.m.Close())
		return nil
	}},
	{name: "a waiter that leaves a turn", opts: []zklock.Option{zklock.WithLocalHandover(5)}, use: func(w keyedWorld) func() {
		must(w.t, w.rival.Lock(w.t.Context(), "a"))
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		wantErr(w.t, "Lock", w.k.Lock(ctx, "a"), context.DeadlineExceeded)
		must(w.t, w.rival.Unlock("a"))
		return nil
	}},
}

// A key is in use for as long as its object matters, and forgotten after that.
func TestKeyedForgets(t *testing.T) {
	for _, test := range keyUses {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
				w := keyedWorld{t: t, server: server, m: connect()}
				w.k, w.rival = newKeyed(t, w.m, keysDir, test.opts...), newKeyed(t, connect(), keysDir)
				last := test.use(w)
				wantKeys(t, "after the use", w.k, test.inUse)
				if last != nil {
					last()
					wantKeys(t, "in the end", w.k, 0)
				}
				wantKeys(t, "in the other process", w.rival, 0)
			})
		})
	}
}

// A Do of a key that nobody uses sends what a Do of a Mutex does.
func TestKeyedSendsNoMore(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		m := connect()
		k := newKeyed(t, m, keysDir)
		mx := newMutex(t, m, k.Path("a"))
		must(t, mx.Do(t.Context(), nothing)) // makes the directory
		below := func(r zktest.Request) bool { return strings.HasPrefix(r.Path, k.Path("a")) }
		server.ResetRequests()
		must(t, mx.Do(t.Context(), nothing))
		want := server.Count(below)
		server.ResetRequests()
		must(t, k.Do(t.Context(), "a", nothing))
		if n := server.Count(below); n != want || n == 0 {
			t.Errorf("%d requests, of a Mutex %d", n, want)
		}
	})
}

// What a process has learned about the places of a key is not forgotten with each use: one that others take is not kept
// again and again.
func TestKeyedRemembersHabits(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		k, rival := newKeyed(t, connect(), keysDir, zklock.WithLazyRelease(5*time.Second)), newKeyed(t, connect(), keysDir)
		kept := 0
		for range 40 {
			must(t, k.Do(t.Context(), "a", nothing))
			time.Sleep(10 * time.Millisecond)
			all, err := rival.Contenders(t.Context(), "a")
			must(t, err)
			kept += len(all)
			must(t, rival.Do(t.Context(), "a", nothing))
		}
		if kept > 8 { // after 1, 2, 4, 8 and 16 that are not
			t.Errorf("%d of 40 places were kept for nothing", kept)
		}
	})
}

// Goroutines of two processes that do everything with a few keys never hold one together, and leave nothing.
func TestKeyedExcludes(t *testing.T) {
	for name, opts := range map[string][]zklock.Option{
		"plain": nil, "handed": {zklock.WithLocalHandover(3)}, "kept": {zklock.WithLazyRelease(20 * time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
				server.Delay(time.Millisecond)
				both := []*zklock.Keyed{newKeyed(t, connect(), keysDir, opts...), newKeyed(t, connect(), keysDir, opts...)}
				var inside [2]int
				var all []<-chan error
				for i := range 12 {
					key, k := i%2, both[i%3/2]
					work := func(context.Context) error {
						if inside[key]++; inside[key] != 1 {
							t.Error("two are inside")
						}
						time.Sleep(time.Millisecond)
						inside[key]--
						return nil
					}
					all = append(all, background(func() (err error) {
						for n := 0; n < 40 && err == nil; n++ {
							err = useKey(t.Context(), k, fmt.Sprint(key), n+i, work)
							time.Sleep(time.Duration(n+i) % 7 * time.Millisecond)
						}
						return err
					}))
				}
				for _, one := range all {
					must(t, receive(t, "a goroutine", one))
				}
				time.Sleep(time.Second)
				for _, k := range both {
					wantKeys(t, "in the end", k, 0)
				}
			})
		})
	}
}

// useKey works under the lock of a key in one of several ways. Ways in which nothing is done are no error.
func useKey(ctx context.Context, k *zklock.Keyed, key string, way int, work func(context.Context) error) error {
	switch way % 4 {
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
	}
	if err := k.Lock(queue.WithMaxWait(ctx, 5*time.Millisecond), key); err != nil {
		if errors.Is(err, queue.ErrMaxWait) {
			return nil
		}
		return err
	}
	return errors.Join(work(ctx), k.Unlock(key))
}
