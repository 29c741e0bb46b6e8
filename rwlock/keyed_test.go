package rwlock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

func newKeyed(tb testing.TB, m *session.Manager, dir string, opts ...rwlock.Option) *rwlock.Keyed {
	tb.Helper()
	k, err := rwlock.NewKeyed(m, dir, opts...)
	must(tb, err)
	return k
}

func wantKeys(t *testing.T, when string, k *rwlock.Keyed, n int) {
	t.Helper()
	synctest.Wait()
	if in := rwlock.KeysInUse(k); in != n {
		t.Errorf("%s: %d keys in use, want %d", when, in, n)
	}
}

func noWork(context.Context) error { return nil }

// inKeyedBubble runs f in virtual time, with the locks of two processes.
func inKeyedBubble(t *testing.T, f func(t *testing.T, server *zktest.Server, m *session.Manager, k, rival *rwlock.Keyed), opts ...rwlock.Option) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t, zktest.ContainerCheck(24*time.Hour))
		var both [2]*session.Manager
		for i := range both {
			var err error
			both[i], err = session.Connect(t.Context(), "zookeeper:2181", session.WithDialer(server.Dialer()),
				session.WithTimeout(10*time.Second), session.WithLogger(slog.New(slog.DiscardHandler)))
			must(t, err)
			t.Cleanup(func() { _ = both[i].Close() })
		}
		f(t, server, both[0], newKeyed(t, both[0], "/accounts", opts...), newKeyed(t, both[1], "/accounts"))
	})
}

// Readers and writers of a key exclude each other, and the key is forgotten after them.
func TestKeyed(t *testing.T) {
	inKeyedBubble(t, func(t *testing.T, _ *zktest.Server, _ *session.Manager, k, rival *rwlock.Keyed) {
		must(t, k.RDo(t.Context(), "a", func(context.Context) error {
			must(t, rival.RDo(t.Context(), "a", noWork))
			ran, err := rival.TryDo(t.Context(), "a", noWork)
			must(t, err)
			if ran {
				t.Error("a writer beside a reader")
			}
			must(t, rival.Do(t.Context(), "b", noWork))
			wantKeys(t, "while one reads", k, 1)
			return nil
		}))
		must(t, k.Do(t.Context(), "a", func(context.Context) error {
			ran, err := rival.TryRDo(t.Context(), "a", noWork)
			must(t, err)
			if ran {
				t.Error("a reader beside a writer")
			}
			_, err = rival.TryAcquire(t.Context(), "a")
			wantErr(t, "TryAcquire", err, queue.ErrBusy)
			_, err = rival.TryRAcquire(t.Context(), "a")
			wantErr(t, "TryRAcquire", err, queue.ErrBusy)
			if err != nil && !strings.Contains(err.Error(), k.Path("a")) {
				t.Errorf("the error does not name the lock: %v", err)
			}
			all, err := rival.Contenders(t.Context(), "a")
			if must(t, err); len(all) != 1 {
				t.Errorf("contenders %v", all)
			}
			return nil
		}))
		l, err := k.Acquire(t.Context(), "a")
		must(t, err)
		must(t, l.Release(t.Context()))
		l, err = k.RAcquire(t.Context(), "a")
		must(t, err)
		must(t, l.Release(t.Context()))
		wantKeys(t, "in the end", k, 0)
		wantKeys(t, "in the end, in the other process", rival, 0)
	})
}

// Readers share the place of a key, which is kept. The key is in use until its time is over, and for as long as a reader
// that comes could share the place.
func TestKeyedReadersShare(t *testing.T) {
	inKeyedBubble(t, func(t *testing.T, server *zktest.Server, m *session.Manager, k, rival *rwlock.Keyed) {
		must(t, k.RDo(t.Context(), "a", noWork))
		wantKeys(t, "a kept place", k, 1)
		time.Sleep(time.Second)
		server.ResetRequests()
		first, err := k.RAcquire(t.Context(), "a")
		must(t, err)
		must(t, k.RDo(t.Context(), "a", func(ctx context.Context) error {
			if l, _ := queue.LeaseFrom(ctx); l.Path() != first.Path() {
				t.Errorf("two readers have the nodes %s and %s", first.Path(), l.Path())
			}
			return nil
		}))
		if n := server.Count(func(r zktest.Request) bool { return strings.HasPrefix(r.Path, k.Path("a")) }); n != 0 {
			t.Errorf("%d requests for a place that is kept", n)
		}
		time.Sleep(time.Minute)
		must(t, first.Release(t.Context()))
		time.Sleep(5 * time.Second)
		wantKeys(t, "in the end", k, 0)

		must(t, k.Do(t.Context(), "a", noWork))
		must(t, rival.Do(t.Context(), "a", noWork))
		s, err := m.Session(t.Context())
		must(t, err)
		must(t, server.Expire(t.Context(), s.ID()))
		time.Sleep(time.Minute)
		wantKeys(t, "after the loss of the session", k, 0)
	}, rwlock.WithLazyRelease(5*time.Second))
}

// A writer of a key goes on as its reader.
func TestKeyedOwners(t *testing.T) {
	inKeyedBubble(t, func(t *testing.T, _ *zktest.Server, _ *session.Manager, k, _ *rwlock.Keyed) {
		ctx := queue.WithOwner(t.Context())
		must(t, k.Do(ctx, "a", func(ctx context.Context) error {
			return errors.Join(k.RDo(ctx, "a", noWork), k.Do(ctx, "a", noWork), k.Do(ctx, "b", noWork))
		}))
		err := k.RDo(ctx, "a", func(ctx context.Context) error { return k.Do(ctx, "a", noWork) })
		wantErr(t, "an upgrade", err, rwlock.ErrUpgrade)
		wantKeys(t, "in the end", k, 0)
	})
}

func TestNewKeyedRefuses(t *testing.T) {
	m := connect(t)
	for what, make := range map[string]func() (*rwlock.Keyed, error){
		"no manager":   func() (*rwlock.Keyed, error) { return rwlock.NewKeyed(nil, "/locks") },
		"a bad path":   func() (*rwlock.Keyed, error) { return rwlock.NewKeyed(m, "locks") },
		"a nil option": func() (*rwlock.Keyed, error) { return rwlock.NewKeyed(m, "/locks", nil) },
		"a bad option": func() (*rwlock.Keyed, error) { return rwlock.NewKeyed(m, "/locks", rwlock.WithLazyRelease(-1)) },
	} {
		if _, err := make(); !errors.Is(err, session.ErrInvalid) || strings.Count(err.Error(), "rwlock: ") != 1 {
			t.Errorf("%s: %v", what, err)
		}
	}
	k := newKeyed(t, m, "/locks")
	wantErr(t, "Do of nil", k.Do(patient(t), "a", nil), session.ErrInvalid)
	wantErr(t, "RDo of nil", k.RDo(patient(t), "a", nil), session.ErrInvalid)
}
