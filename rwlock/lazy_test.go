package rwlock_test

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
)

var lazy = rwlock.WithLazyRelease(time.Minute)

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
