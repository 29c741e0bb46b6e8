package queue_test

import (
	"context"
	"runtime"
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

// A hook ends its goroutine while a call of the Watch hook is open. The wait goes on.
func TestWaitOutlivesHook(t *testing.T) {
	t.Parallel()
	dir := persistentDir(t)
	holder := acquire(t, client(t, dir))
	hook, begun, ended := watchCalls()
	asked := make(chan struct{}, 100)
	q, _, _ := proxied(t, dir, session.WithTimeout(short), session.WithTrace(session.Trace{
		Watch: hook,
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if r.Op == "exists" && strings.HasPrefix(r.Path, dir+"/") {
				asked <- struct{}{}
				runtime.Goexit()
			}
			return ctx, nil
		},
	}))
	w := begin(t, q, ask)
	await(t, begun, "the wait to begin")
	await(t, asked, "the question whether all nodes are there")
	select {
	case err := <-ended:
		t.Errorf("the call of the Watch hook has ended with %v", err)
	default:
	}
	release(t, holder)
	release(t, w.get(t))
	mustBe(t, <-ended, nil)
}
