package queue_test

import (
	"context"
	"errors"
	"path"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The reply to the request for the watch on the holder's own node is lost, and the hook that hears
// of the next try ends the goroutine of the turn. Somebody deletes the node, and another comes in:
// the first has to notice that it has lost the lock.
func TestHookEndsTheGuard(t *testing.T) {
	dir := persistentDir(t)
	retried := make(chan struct{})
	var once atomic.Bool
	// The session outlives the test. The end of a hold that only a later look notices comes too late.
	q, proxy, _ := proxied(t, dir, session.WithTimeout(time.Minute), session.WithTrace(session.Trace{
		Retry: func(_ context.Context, r session.RetryInfo) {
			if r.Op == "getData" && once.CompareAndSwap(false, true) {
				close(retried)
				runtime.Goexit()
			}
		},
	}))
	proxy.CutAfterCommit(zktest.On(zktest.OpGetData, dir+"/"))
	l := acquire(t, q)
	await(t, retried, "the second try")
	zktest.Eventually(t, testserver.Patience, "reconnected", func() bool { return len(proxy.Sessions()) > 0 })

	if _, err := l.Token(patient(t)); err != nil {
		t.Errorf("Token hangs: %v", err)
	}
	testserver.Delete(t, dir, path.Base(l.Path()))
	other := acquire(t, client(t, dir))
	select {
	case <-l.Done():
	case <-time.After(testserver.Patience):
	}
	if l.Err() == nil && other.Err() == nil {
		t.Errorf("both %s and %s are held", l.Path(), other.Path())
	}
	if err := l.Release(patient(t)); err != nil && !errors.Is(err, session.ErrLost) && !errors.Is(err, queue.ErrReleased) {
		t.Error(err)
	}
	release(t, other)
}
