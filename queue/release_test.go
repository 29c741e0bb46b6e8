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

// The reply to the delete is lost. The release succeeds, and the repeated delete hits no other node.
func TestReleaseReplyLost(t *testing.T) {
	for _, c := range []struct {
		what string
		arm  func(*zktest.Proxy, zktest.Match) *zktest.Fault
	}{
		{"committed", (*zktest.Proxy).CutAfterCommit},
		{"not committed", (*zktest.Proxy).CutBefore},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := persistentDir(t)
			q, proxy, _ := proxied(t, dir)
			l := acquire(t, q)
			next := enter(t, client(t, dir), 2)
			fault := c.arm(proxy, ofContenders(dir, zktest.OpDelete))
			release(t, l)
			await(t, fault.Hit(), "the fault")
			n := next.get(t)
			onlyChild(t, n)
			if got := proxy.Count(ofContenders(dir, zktest.OpDelete)); got != 2 {
				t.Errorf("%d deletes, want 2", got)
			}
			for _, r := range proxy.Requests() {
				if r.Op == zktest.OpDelete && r.Path != l.Path() {
					t.Errorf("deleted %s", r.Path)
				}
			}
			release(t, n)
		})
	}
}

// A release with an ended context takes effect.
func TestReleaseWithEndedContext(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, _ := proxied(t, dir)
	l := acquire(t, q)
	hold := proxy.HoldRequest(ofContenders(dir, zktest.OpDelete))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := l.Release(ctx)
	mustBe(t, err, queue.ErrReleasePending)
	mustBe(t, err, context.Canceled)
	mustBeReleased(t, l)
	await(t, hold.Hit(), "the delete")
	hold.Release()
	testserver.WaitChildren(t, dir, 0)
}

func TestReleaseTwice(t *testing.T) {
	dir := persistentDir(t)
	l := acquire(t, client(t, dir))
	release(t, l)
	next := acquire(t, client(t, dir))
	mustBe(t, l.Release(patient(t)), queue.ErrReleased)
	mustBeReleased(t, l)
	onlyChild(t, next)
	release(t, next)
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
