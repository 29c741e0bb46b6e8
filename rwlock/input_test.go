package rwlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// New and NewKeyed return an error for bad input, before any I/O: the manager of this test cannot do any. The error names the
// package once.
func TestNewInvalid(t *testing.T) {
	m := new(session.Manager)
	for what, c := range map[string]struct {
		m    *session.Manager
		path string
		opt  rwlock.Option
	}{
		"no manager":       {nil, dir, lazy},
		"a bad path":       {m, "locks", lazy},
		"the root":         {m, "/", lazy},
		"a nil option":     {m, dir, nil},
		"an empty name":    {m, dir, rwlock.WithName("")},
		"no time to keep":  {m, dir, rwlock.WithLazyRelease(0)},
		"too long to keep": {m, dir, rwlock.WithLazyRelease(time.Minute + 1)},
	} {
		rw, err := rwlock.New(c.m, c.path, c.opt)
		k, keyedErr := rwlock.NewKeyed(c.m, c.path, c.opt)
		if what == "the root" && keyedErr == nil { // keys are below it
			keyedErr = err
		}
		for _, err := range []error{err, keyedErr} {
			if !errors.Is(err, session.ErrInvalid) || strings.Count(err.Error(), "rwlock: ") != 1 {
				t.Errorf("%s: %v", what, err)
			}
		}
		if rw != nil || k != nil && what != "the root" {
			t.Errorf("%s: a lock beside an error", what)
		}
	}
}

// A nil context and an object that was not made by its constructor panic, before anything is sent or changed.
func TestMisuse(t *testing.T) {
	m := testserver.Connect(t, zktest.Start(t).Addr())
	rw, err := rwlock.New(m, dir)
	expect.NoError(t, err)
	k, err := rwlock.NewKeyed(m, dir)
	expect.NoError(t, err)
	misusetest.Check(t, misusetest.Package{
		Name:    "rwlock",
		Objects: []misusetest.Object{{Zero: &rwlock.RWMutex{}, Made: rw}, {Zero: &rwlock.Keyed{}, Made: k}},
		Values:  []any{rw.Reader()},
		Unmade:  []any{rwlock.Reader{}},
	})
	expect.Match(t, "Do of nil", k.Do(t.Context(), "a", nil), session.ErrInvalid)
	expect.Match(t, "RDo of nil", k.RDo(t.Context(), "a", nil), session.ErrInvalid)
}

// Each error reads as one sentence: what was called, on which path, and what went wrong.
func TestErrorTexts(t *testing.T) {
	run(t, func(w world) {
		says := func(err error, want string) {
			t.Helper()
			testserver.CheckTexts(t, dir, map[string]testserver.ErrorText{"text": {Err: err, Want: want}})
		}
		m := w.Connect()
		rw, owner := w.on(m), queue.WithOwner(w.Context())
		_, err := rwlock.New(m, dir, nil, rwlock.WithName(""))
		says(err, "rwlock: invalid argument: nil option; empty name")
		says(rw.RUnlock(), "unlock /a: lock is not held")
		w.Must(rw.RLock(owner))
		says(rw.Lock(owner), "acquire /a: a read lock cannot become a write lock")
		w.Lose(m)
		const lost = "session 0x1: lost: expired by the server"
		says(rw.Lock(owner), "acquire /a: "+lost)
		says(rw.RLock(owner), "acquire /a: "+lost)
		says(rw.RUnlock(), "unlock /a: "+lost+", since NOW")
		w.Must(m.Close())
		says(rw.RLock(owner), "acquire /a: session manager closed")
	})
}

// twoKeyed are the locks of two processes.
type twoKeyed struct {
	world
	m        *session.Manager
	k, rival *rwlock.Keyed
}

func runKeyed(t *testing.T, f func(w twoKeyed), opts ...rwlock.Option) {
	t.Helper()
	run(t, func(w world) {
		keyed := func(m *session.Manager, opts ...rwlock.Option) *rwlock.Keyed {
			k, err := rwlock.NewKeyed(m, "/accounts", opts...)
			w.Must(err)
			return k
		}
		m := w.Connect()
		f(twoKeyed{w, m, keyed(m, opts...), keyed(w.Connect())})
	})
}

func (w twoKeyed) keys(when string, n int) {
	w.T.Helper()
	synctest.Wait()
	if in := rwlock.KeysInUse(w.k); in != n {
		w.Errorf("%s: %d keys in use, want %d", when, in, n)
	}
}

// Readers and writers of a key exclude each other, and the key is forgotten after them. A writer of a key goes on as its
// reader.
func TestKeyed(t *testing.T) {
	runKeyed(t, func(w twoKeyed) {
		ctx := w.Context()
		runs := func(what string, do func(context.Context, string, func(context.Context) error) (bool, error), key string, want bool) {
			t.Helper()
			if ran, err := do(ctx, key, nothing); ran != want || err != nil {
				t.Errorf("%s: %v, %v", what, ran, err)
			}
		}
		w.Must(w.k.RDo(ctx, "a", func(context.Context) error {
			runs("a reader beside a reader", w.rival.TryRDo, "a", true)
			runs("a writer beside a reader", w.rival.TryDo, "a", false)
			runs("a writer of another key", w.rival.TryDo, "b", true)
			w.keys("while one reads", 1)
			return nil
		}))
		w.Must(w.k.Do(ctx, "a", func(context.Context) error {
			runs("a reader beside a writer", w.rival.TryRDo, "a", false)
			w.Want("TryAcquire", expect.Err(w.rival.TryAcquire(ctx, "a")), queue.ErrBusy)
			_, err := w.rival.TryRAcquire(ctx, "a")
			if w.Want("TryRAcquire", err, queue.ErrBusy); err != nil && !strings.Contains(err.Error(), w.k.Path("a")) {
				t.Errorf("the error does not name the lock: %v", err)
			}
			if all, err := w.rival.Contenders(ctx, "a"); err != nil || len(all) != 1 {
				t.Errorf("contenders %v, %v", all, err)
			}
			return nil
		}))
		for _, acquire := range []func(context.Context, string) (*queue.Lease, error){w.k.Acquire, w.k.RAcquire} {
			l, err := acquire(ctx, "a")
			w.Must(err)
			w.Must(l.Release(ctx))
		}
		owner := queue.WithOwner(ctx)
		w.Must(w.k.Do(owner, "a", func(ctx context.Context) error {
			return errors.Join(w.k.RDo(ctx, "a", nothing), w.k.Do(ctx, "a", nothing), w.k.Do(ctx, "b", nothing))
		}))
		err := w.k.RDo(owner, "a", func(ctx context.Context) error { return w.k.Do(ctx, "a", nothing) })
		w.Want("an upgrade", err, rwlock.ErrUpgrade)
		w.keys("in the end", 0)
	})
}

// Readers share the place of a key, which is kept. The key is in use until its time is over, and for as long as a reader
// that comes could share the place.
func TestKeyedReadersShare(t *testing.T) {
	runKeyed(t, func(w twoKeyed) {
		ctx := w.Context()
		w.Must(w.k.RDo(ctx, "a", nothing))
		w.keys("a kept place", 1)
		w.Pass(time.Second)
		first, err := w.k.RAcquire(ctx, "a")
		w.Must(err)
		w.Must(w.k.RDo(ctx, "a", func(ctx context.Context) error {
			if l, _ := queue.LeaseFrom(ctx); l.Path() != first.Path() {
				t.Errorf("two readers have the nodes %s and %s", first.Path(), l.Path())
			}
			return nil
		}))
		w.Pass(time.Minute)
		w.Must(first.Release(ctx))
		w.Pass(5 * time.Second)
		w.keys("in the end", 0)
		w.Must(w.k.Do(ctx, "a", nothing))
		w.Must(w.rival.Do(ctx, "a", nothing))
		w.Lose(w.m)
		w.Pass(time.Minute)
		w.keys("after the loss of the session", 0)
	}, lazy)
}
