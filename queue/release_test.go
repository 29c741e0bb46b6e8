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

// A lease that is released while disconnected is over at once. The node is deleted when the connection
// is back, without a further call.
func TestReleaseDisconnected(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, m := proxied(t, dir)
	before := testserver.Session(t, m).ID()
	l := acquire(t, q)
	next := enter(t, client(t, dir), 2)
	proxy.Refuse(true)
	proxy.Disconnect()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := l.Release(ctx)
	mustBe(t, err, queue.ErrReleasePending)
	mustBe(t, err, context.DeadlineExceeded)
	mustBeReleased(t, l)
	next.waits(t, "the server has not heard of the release")
	proxy.Heal()
	n := next.get(t)
	onlyChild(t, n)
	if testserver.Session(t, m).ID() != before {
		t.Error("not in the same session: its end released the lock")
	}
	release(t, n)
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

// StartRelease ends the lease and sends the delete, before anybody waits for it.
func TestStartRelease(t *testing.T) {
	dir := persistentDir(t)
	l := acquire(t, client(t, dir))
	wait := l.StartRelease(patient(t), true)
	mustBe(t, l.Err(), queue.ErrReleased)
	testserver.WaitChildren(t, dir, 0)
	mustBe(t, wait.Wait(patient(t)), nil)
	mustBe(t, l.StartRelease(patient(t), true).Wait(patient(t)), queue.ErrReleased)
}
