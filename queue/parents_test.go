package queue_test

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// Fencing tokens grow from holder to holder, even if the directory was deleted and its sequence numbers
// start again, and whether or not the holder had to wait.
func TestTokenGrows(t *testing.T) {
	dir := testserver.Path(t)
	a, b := client(t, dir), client(t, dir)
	var last int64
	grown := func(l *queue.Lease) {
		t.Helper()
		token, err := l.Token(patient(t))
		mustBe(t, err, nil)
		_, stat, err := testserver.Admin(t).Get(l.Path())
		if err != nil || stat.Czxid != token {
			t.Errorf("token %d, czxid %v: %v", token, stat, err)
		}
		if token <= last {
			t.Errorf("token %d after %d", token, last)
		}
		last = token
	}
	for round := range 3 {
		first := acquire(t, a)
		if !strings.HasSuffix(first.Path(), "0000000000") {
			t.Fatalf("round %d: the sequence has not begun again: %s", round, first.Path())
		}
		second := enter(t, b, 2)
		grown(first)
		release(t, first)
		l := second.get(t)
		grown(l)
		release(t, l)
		if err := testserver.Admin(t).Delete(dir, -1); err != nil && err != zk.ErrNoNode { // as the reaper does
			t.Fatal(err)
		}
	}
}

// A lease that has ended still returns its token if it knew it. If it did not, Token does not hang.
func TestTokenAfterEnd(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, _ := proxied(t, dir)
	l := acquire(t, q)
	want, err := l.Token(patient(t))
	mustBe(t, err, nil)
	release(t, l)
	if got, err := l.Token(patient(t)); got != want || err != nil {
		t.Errorf("Token after release: %d, %v; want %d", got, err, want)
	}
	hold := proxy.HoldReply(ofContenders(dir, zktest.OpGetData))
	l = acquire(t, q)
	await(t, hold.Hit(), "the get")
	done := make(chan error)
	go func() {
		_, err := l.Token(patient(t))
		done <- err
	}()
	go hold.Release() // the release needs it
	_ = l.Release(patient(t))
	if err := <-done; err != nil { // known in the end, or not: both are answers
		mustBe(t, err, queue.ErrReleased)
	}
}
