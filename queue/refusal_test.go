package queue_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// refused is a holder whose delete the server refuses until allow is called.
type refused struct {
	dir   string
	q     *queue.Queue
	m     *session.Manager
	log   *lines
	lease *queue.Lease
}

func newRefused(t *testing.T, r queue.Request) *refused {
	t.Helper()
	f := &refused{dir: dirWithout(t, zk.PermDelete), log: new(lines)}
	f.q, _, f.m = proxied(t, f.dir, session.WithLogger(slog.New(slog.NewTextHandler(f.log, nil))))
	var err error
	f.lease, err = f.q.Acquire(patient(t), r)
	mustBe(t, err, nil)
	return f
}

// allow restores the permission to delete.
func (f *refused) allow(t *testing.T) {
	t.Helper()
	_, err := testserver.Admin(t).SetACL(f.dir, zk.WorldACL(zk.PermAll), -1)
	mustBe(t, err, nil)
}

// lives fails unless the session is still the one that held the lease.
func (f *refused) lives(t *testing.T, s *session.Session) {
	t.Helper()
	if now := testserver.Session(t, f.m); now != s || s.Err() != nil {
		t.Errorf("session %v, was %v: %v", now.ID(), s.ID(), s.Err())
	}
}

// lines returns the lines that were logged.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// A release that the server refuses is repeated, so that the next contender gets the lock when the
// permission is back. The session lives on.
func TestRefusedReleaseGoesOn(t *testing.T) {
	t.Parallel()
	f := newRefused(t, ask)
	s := testserver.Session(t, f.m)
	next := begin(t, client(t, f.dir), ask)
	waitStat(t, f.dir, 2)
	mustBe(t, f.lease.Release(patient(t)), zk.ErrNoAuth)
	next.waits(t, "the node is still there")
	f.allow(t)
	release(t, next.get(t))
	f.lives(t, s)
	zktest.Eventually(t, testserver.Patience, "the line in the log", func() bool {
		return f.log.count("removed a node that it had refused") == 1
	})
	if n := f.log.count("refuses to remove"); n != 1 {
		t.Errorf("%d lines about the refusal", n)
	}
	testserver.WaitChildren(t, f.dir, 0)
}

// Several deletes are refused before the permission is back. One line is logged.
func TestRefusedReleaseIsLoggedOnce(t *testing.T) {
	t.Parallel()
	dir := dirWithout(t, zk.PermDelete)
	log := new(lines)
	q, proxy, _ := proxied(t, dir, session.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	l := acquire(t, q)
	mustBe(t, l.Release(patient(t)), zk.ErrNoAuth)
	zktest.Eventually(t, testserver.Patience, "a second try", func() bool {
		return proxy.Count(ofContenders(dir, zktest.OpDelete)) >= 2 && log.count("refuses to remove") > 0
	})
	if n := log.count("refuses to remove"); n != 1 {
		t.Errorf("%d lines about the refusal", n)
	}
}
