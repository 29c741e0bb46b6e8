package zklock_test

import (
	"context"
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
	{name: "a kept place that is lost", opts: []zklock.Option{zklock.WithLazyRelease(5 * time.Second)}, use: func(w keyedWorld) func() {
		must(w.t, w.k.Do(w.t.Context(), "a", nothing))
		w.expire()
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
