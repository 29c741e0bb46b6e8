package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

func mustBeReleased(t *testing.T, l *queue.Lease) {
	t.Helper()
	mustBe(t, l.Err(), queue.ErrReleased)
	select {
	case <-l.Done():
	default:
		t.Error("Done is not closed")
	}
}

// Many goroutines release one lease at once. One of them releases it.
func TestReleaseRace(t *testing.T) {
	dir := persistentDir(t)
	l := acquire(t, client(t, dir))
	errs := make(chan error)
	for range 8 {
		go func() { errs <- l.Release(context.Background()) }()
	}
	good := 0
	for range 8 {
		if err := <-errs; err == nil {
			good++
		} else if !errors.Is(err, queue.ErrReleased) {
			t.Error(err)
		}
	}
	if good != 1 {
		t.Errorf("%d released it", good)
	}
}

// The session ends right after a release, which returns ErrReleasePending.
func TestReleaseThenClose(t *testing.T) {
	t.Parallel()
	dir := persistentDir(t)
	q, proxy, m := proxied(t, dir)
	l := acquire(t, q)
	hold := proxy.HoldRequest(ofContenders(dir, zktest.OpDelete))
	done := make(chan error, 1)
	go func() { done <- l.Release(context.Background()) }()
	await(t, hold.Hit(), "the delete")
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = m.Close()
	}()
	select {
	case err := <-done:
		mustBe(t, err, queue.ErrReleasePending)
		mustBe(t, err, session.ErrClosed)
	case <-time.After(testserver.Patience):
		t.Fatal("Release hangs")
	}
	hold.Release()
	await(t, closed, "Close")
	testserver.WaitChildren(t, dir, 0)
}
