package rwlock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A busy try of either side makes no node. For a reader only writers are in the way.
func TestTryLooksFirst(t *testing.T) {
	dir := testserver.Path(t)
	m, proxy := proxied(t, session.WithTimeout(testserver.Patience))
	other, rw := newLock(t, connect(t), dir), newLock(t, m, dir)
	ctx := patient(t)
	wantTry(t, "free", rw.TryLock, ctx, true)
	must(t, rw.Unlock())
	creates := func() int { return proxy.Count(zktest.On(zktest.OpCreate, dir)) }
	busy := func(what string, try func(context.Context) (bool, error)) {
		t.Helper()
		before := creates()
		wantTry(t, what, try, ctx, false)
		if creates() != before {
			t.Errorf("%s: made a node", what)
		}
	}

	must(t, other.RLock(ctx))
	busy("a writer beside a reader", rw.TryLock)
	wantTry(t, "a reader beside a reader", rw.TryRLock, ctx, true)
	writer := queued(t, dir, 3, other.Lock)
	busy("a reader behind a writer that waits", rw.TryRLock)
	must(t, rw.RUnlock())
	must(t, other.RUnlock())
	must(t, receive(t, "the writer", writer))
	busy("a reader beside a writer", rw.TryRLock)
	busy("a writer beside a writer", rw.TryLock)
	must(t, other.Unlock())
	wantTry(t, "a writer after all", rw.TryLock, ctx, true)
	must(t, rw.Unlock())
}

// An owner that holds the lock is asked for nothing: it enters again, reads beside its own write, and cannot upgrade.
func TestTryOwner(t *testing.T) {
	m, proxy := proxied(t, session.WithTimeout(testserver.Patience))
	rw := newLock(t, m, testserver.Path(t))
	ctx := queue.WithOwner(patient(t))
	must(t, rw.Lock(ctx))
	wantTry(t, "a try to read beside", rw.TryRLock, ctx, true)
	must(t, rw.Unlock())
	if _, err := rw.TryLock(ctx); !errors.Is(err, rwlock.ErrUpgrade) {
		t.Errorf("upgrade: %v", err)
	}
	wantTry(t, "a try to read again", rw.TryRLock, ctx, true)
	if n := proxy.Count(zktest.Any(zktest.OpSync)); n > 0 {
		t.Errorf("%d tries have read", n)
	}
	must(t, rw.RUnlock())
	must(t, rw.RUnlock())
}
