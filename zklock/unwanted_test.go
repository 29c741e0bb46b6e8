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
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
		m, other := connect(), connect()
		stranger := newMutex(t, other, busy, lazy) // a try takes that for a place that may leave, and enters
		must(t, stranger.Lock(t.Context()))
		for _, one := range []zklock.ContextLocker{newMutex(t, m, first, lazy), lazyRW(t, m, first).Reader(), lazyRW(t, m, first)} {
			multi := newMulti(t, one, newMutex(t, m, busy))
			_, err := multi.TryAcquire(t.Context())
			wantErr(t, "a try", err, queue.ErrBusy)
			time.Sleep(time.Second) // the delete is on its way
			wantChildren(t, other, first, 0)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			wantErr(t, "Lock", multi.Lock(ctx), context.DeadlineExceeded)
			cancel()
			time.Sleep(time.Second)
			wantChildren(t, other, first, 0)
			wantChildren(t, other, busy, 1)
		}
	})
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
