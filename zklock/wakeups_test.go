package zklock_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// TestWakeUps counts the waiters that one release wakes. The number does not depend on the number of waiters: the last two
// contenders ahead are watched, so a second waiter learns that the holder has gone, and sends nothing.
func TestWakeUps(t *testing.T) {
	const waiters = 20
	ctx := patient(t)
	dir := testserver.Path(t)
	holder := newMutex(t, connect(t), dir)
	must(t, holder.Lock(ctx))
	proxy := testserver.Proxy(t)
	var begun, woken atomic.Int64
	waits := session.WithTrace(session.Trace{
		Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
			begun.Add(1)
			return ctx, func(error) { woken.Add(1) }
		},
	})
	entered, leave := make(chan error, waiters), make(chan struct{})
	for range waiters {
		m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(faultTimeout), waits)
		mx := newMutex(t, m, dir)
		before := begun.Load()
		go func() {
			err := mx.Lock(ctx)
			if err == nil {
				defer func() { _ = mx.Unlock() }()
			}
			entered <- err
			<-leave
		}()
		zktest.Eventually(t, testserver.Patience, "the waiter to wait", func() bool { return begun.Load() > before })
	}
	begun.Store(0)
	woken.Store(0)
	proxy.ResetRequests()
	must(t, holder.Unlock())
	must(t, receive(t, "the next", entered))
	zktest.Eventually(t, testserver.Patience, "the second to wait again", func() bool { return begun.Load() >= 1 })
	requests := proxy.Count(func(r zktest.Request) bool { return r.Op != zktest.OpPing })
	t.Logf("%d wait: a release wakes %d of them, which send %d requests", waiters, woken.Load(), requests)
	if woken.Load() != 2 {
		t.Errorf("%d were woken, want 2", woken.Load())
	}
	close(leave)
	for range waiters - 1 {
		must(t, receive(t, "the next", entered))
	}
	testserver.WaitChildren(t, dir, 0)
}
