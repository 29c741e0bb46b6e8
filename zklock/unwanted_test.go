package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A MultiLock that does not get all of its locks keeps the place of none, also if one has WithLazyRelease.
func TestMultiKeepsNothingUnused(t *testing.T) {
	const first, busy = "/locks/a", "/locks/b"
	wantBusy := func(t *testing.T, err error) {
		t.Helper()
		wantErr(t, "a try", err, queue.ErrBusy)
	}
	for what, call := range map[string]func(*testing.T, *zklock.MultiLock){
		"TryLock": func(t *testing.T, m *zklock.MultiLock) {
			ok, err := m.TryLock(t.Context())
			must(t, err)
			if ok {
				t.Error("TryLock got a lock that is held")
			}
		},
		"TryAcquire": func(t *testing.T, m *zklock.MultiLock) {
			_, err := m.TryAcquire(t.Context())
			wantBusy(t, err)
		},
		"Lock whose context ends": func(t *testing.T, m *zklock.MultiLock) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			wantErr(t, "Lock", m.Lock(ctx), context.DeadlineExceeded)
		},
		"Do whose context ends": func(t *testing.T, m *zklock.MultiLock) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := m.Do(ctx, func(context.Context) error { t.Error("called"); return nil })
			wantErr(t, "Do", err, context.DeadlineExceeded)
		},
	} {
		for kind, lazily := range map[string]func(*testing.T, *session.Manager) zklock.ContextLocker{
			"mutex": func(t *testing.T, m *session.Manager) zklock.ContextLocker { return newMutex(t, m, first, lazy) },
			"readers": func(t *testing.T, m *session.Manager) zklock.ContextLocker {
				return lazyRW(t, m, first).Reader()
			},
			"writer": func(t *testing.T, m *session.Manager) zklock.ContextLocker { return lazyRW(t, m, first) },
		} {
			t.Run(what+"/"+kind, func(t *testing.T) {
				inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
					m, other := connect(), connect()
					stranger := newMutex(t, other, busy, lazy) // a try takes that for a place that may leave, and enters
					must(t, stranger.Lock(t.Context()))
					call(t, newMulti(t, lazily(t, m), newMutex(t, m, busy)))
					time.Sleep(time.Second) // the delete is on its way
					wantChildren(t, other, first, 0)
					wantChildren(t, other, busy, 1)
				})
			})
		}
	}
}

func lazyRW(t *testing.T, m *session.Manager, path string) *rwlock.RWMutex {
	t.Helper()
	rw, err := rwlock.New(m, path, rwlock.WithLazyRelease(time.Minute))
	must(t, err)
	return rw
}

// wantChildren fails the test unless a directory has n children.
func wantChildren(t *testing.T, m *session.Manager, dir string, n int) {
	t.Helper()
	s, err := m.Session(t.Context())
	must(t, err)
	names, _, err := s.Children(t.Context(), dir)
	must(t, err)
	if len(names) != n {
		t.Errorf("%s has %v, want %d", dir, names, n)
	}
}
