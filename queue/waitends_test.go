package queue_test

import (
	"context"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/session"
)

// watchCalls returns a Watch hook, and what it tells: that a call has begun, and how it has ended.
func watchCalls() (hook func(context.Context, session.WatchInfo) (context.Context, func(error)), begun chan struct{}, ended chan error) {
	begun, ended = make(chan struct{}, 10), make(chan error, 10)
	return func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
		begun <- struct{}{}
		return ctx, func(err error) { ended <- err }
	}, begun, ended
}

// A wait that the end of the manager ends is told so, and its error names no request.
func TestWaitEndsWithManager(t *testing.T) {
	dir := persistentDir(t)
	holder := acquire(t, client(t, dir))
	hook, begun, ended := watchCalls()
	q, _, m := proxied(t, dir, session.WithTrace(session.Trace{Watch: hook}))
	w := begin(t, q, ask)
	await(t, begun, "the wait to begin")
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	w.wait(t)
	mustBe(t, w.err, session.ErrClosed)
	mustBe(t, <-ended, session.ErrClosed)
	if strings.Contains(w.err.Error(), "getChildren") {
		t.Errorf("the error is that of a request: %v", w.err)
	}
	release(t, holder)
}
