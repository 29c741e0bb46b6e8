package place

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A node of the same session that is about to be deleted does not make a lock busy: the try enters, and waits until the
// node is gone, for 250 ms at most. Any other contender in the way makes the lock busy.
func TestTryBesideOneThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t)
		var creates atomic.Int64
		trace := session.Trace{Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if r.Op == "create" {
				creates.Add(1)
			}
			return ctx, func(error) {}
		}}
		open := func() (*session.Manager, *Queue) {
			m, err := session.Connect(t.Context(), "zookeeper:2181", session.WithDialer(server.Dialer()),
				session.WithLogger(slog.New(slog.DiscardHandler)), session.WithTrace(trace))
			expect.NoError(t, err)
			t.Cleanup(func() { _ = m.Close() })
			q, err := New((*core.Manager)(m), "/locks/a")
			expect.NoError(t, err)
			return m, q
		}
		m, ours := open()
		_, theirs := open()
		r := Request{Kind: mutexKind}
		acquire := func(q *Queue) *Lease {
			l, err := q.Acquire(t.Context(), r)
			expect.NoError(t, err)
			return l
		}
		leaves := func(l *Lease) { (*core.Session)(testserver.Session(t, m)).Leaving(l.Path()) }
		busy := func(what string, nodes int64, took time.Duration) {
			t.Helper()
			before, began := creates.Load(), time.Now()
			_, err := ours.TryAcquire(t.Context(), r)
			wantBusy(t, err)
			if n, d := creates.Load()-before, time.Since(began); n != nodes || d != took {
				t.Errorf("beside %s: %d nodes, busy after %v", what, n, d)
			}
		}
		first := acquire(ours)
		busy("a holder", 0, 0)
		leaves(first)
		busy("one that leaves", 1, 250*time.Millisecond)
		waiter := make(chan *Lease)
		go func() { waiter <- acquire(theirs) }()
		synctest.Wait()
		busy("one that leaves and one that waits", 0, 0)
		expect.NoError(t, first.Release(t.Context(), Done))
		second := <-waiter
		busy("another session's holder", 0, 0)
		expect.NoError(t, second.Release(t.Context(), Done))

		first = acquire(ours)
		leaves(first)
		time.AfterFunc(200*time.Millisecond, func() { _ = first.Release(t.Context(), Done) })
		began := time.Now()
		l, err := ours.TryAcquire(t.Context(), r)
		expect.NoError(t, err)
		if took := time.Since(began); took != 200*time.Millisecond {
			t.Errorf("a node that is gone after 200 ms: a try got the lock after %v", took)
		}
		expect.NoError(t, l.Release(t.Context(), Done))
	})
}
