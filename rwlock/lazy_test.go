package rwlock_test

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

var lazy = rwlock.WithLazyRelease(time.Minute)

// A reader does not join the others of its process while a writer waits, which the others keep waiting.
func TestLazyReaderBehindWriter(t *testing.T) {
	dir := persistentDir(t)
	m, proxy := proxied(t)
	rw, writer := newLock(t, m, dir, lazy), newLock(t, connect(t), dir)
	ctx := patient(t)
	must(t, rw.RLock(ctx))
	proxy.ResetRequests()
	written := queued(t, dir, 2, writer.Lock)
	zktest.Eventually(t, testserver.Patience, "the readers to look", func() bool { return proxy.Count(listing(dir)) > 0 })
	reads := queued(t, dir, 3, rw.RLock)
	wantTry(t, "while a writer waits", rw.TryRLock, ctx, false)
	pending(t, "the second reader", reads)
	pending(t, "the writer", written)
	must(t, rw.RUnlock())
	must(t, receive(t, "the writer", written))
	pending(t, "the second reader", reads)
	must(t, writer.Unlock())
	must(t, receive(t, "the second reader", reads))
	must(t, rw.RUnlock())
}

// A session that has room for one node has it for the other side as soon as the place that is kept is gone.
func TestLazyOtherSideAtLimit(t *testing.T) {
	dir := persistentDir(t)
	rw := newLock(t, connect(t, session.WithNodeLimits(1, 1<<20)), dir, lazy)
	ctx := patient(t)
	for range 3 {
		must(t, rw.RLock(ctx))
		must(t, rw.RUnlock())
		must(t, rw.Lock(ctx))
		must(t, rw.Unlock())
	}
}
