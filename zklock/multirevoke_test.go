package zklock_test

import (
	"context"
	"path"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// If the holder of one lock gives it up on request while Lock waits for another, Lock starts over.
func TestMultiRevokedWhileWaiting(t *testing.T) {
	ctx := patient(t)
	paths := dirs(t, 2)
	attempts := make(chan string, 10)
	m := connect(t, session.WithTrace(session.Trace{
		Hold: func(ctx context.Context, _ session.HoldInfo) func(error) {
			if l, ok := queue.LeaseFrom(ctx); ok && path.Dir(l.Path()) == paths[0] {
				go func() {
					select {
					case <-l.Revoked():
						_ = l.Release(context.Background())
					case <-l.Done():
					}
				}()
			}
			return nil
		},
		Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			attempts <- a.Path
			return ctx, nil
		},
	}))
	first := newMutex(t, m, paths[0])
	other := newMutex(t, connect(t), paths[1])
	must(t, other.Lock(ctx))
	both := newMulti(t, first, newMutex(t, m, paths[1]))
	got := background(func() error { return both.Lock(ctx) })
	testserver.WaitChildren(t, paths[1], 2)
	must(t, zklock.Revoke(ctx, m, paths[0]+"/"+testserver.Children(t, paths[0])[0]))
	for _, want := range []string{paths[0], paths[1], paths[0]} {
		if got := receive(t, "an attempt", attempts); got != want {
			t.Errorf("takes %s, want %s", got, want)
		}
	}
	must(t, other.Unlock())
	must(t, receive(t, "Lock", got))
	must(t, both.Unlock())
}
