//go:build linux || darwin || freebsd

package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// acquire takes the mutex at a path below the top.
func (w *world) acquire(t *testing.T, p string, opts ...zklock.Option) *queue.Lease {
	t.Helper()
	mx, err := zklock.New(w.manager(t), w.top+"/"+p, opts...)
	expect.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), testserver.Patience)
	defer cancel()
	l, err := mx.Acquire(ctx)
	expect.NoError(t, err)
	return l
}

// lost waits for the end of a lease, and returns the reason.
func lost(t *testing.T, l *queue.Lease) error {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "the end of the lease", func() bool { return l.Err() != nil })
	return l.Err()
}

// A holder that listens gives the lock up, and the next contender gets it.
func TestBreakAsks(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		l := w.acquire(t, "l")
		go func() {
			select {
			case <-l.Revoked():
				_ = l.Release(context.Background())
			case <-l.Done():
			}
		}()
		w.own(t, "l/"+uuidB+"lock-0000000009", dataB)
		got := w.call(t.Context(), "break", w.top+"/l")
		got.want(t, 0)
		got.matches(t, " holds "+w.top+"/l.", "1 other contender waits", "^Asked to give the lock up", "is gone after",
			"^Now web-4/17 holds "+w.top+"/l, and nobody waits")
		if err := lost(t, l); !errors.Is(err, queue.ErrReleased) {
			t.Errorf("the lease ended with %v", err)
		}
	})
}

// With --force, the node is deleted after a yes, and its holder is told.
func TestBreakForce(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		l := w.acquire(t, "l")
		for _, answer := range []string{"no\n", "", "yess\n"} {
			p := w.begin(t, answer, "break", "--force", w.top+"/l")
			p.wait(t, codeNo)
			p.prints(t, "Nothing was deleted")
		}
		if err := l.Err(); err != nil {
			t.Fatalf("the lease has ended: %v", err)
		}
		p := w.begin(t, "yes\n", "break", "--force", w.top+"/l")
		p.wait(t, 0)
		p.prints(t, "It uses the Go library turnstile.", "Deleted "+l.Path()+".", "Nobody holds "+w.top+"/l now")
		if err := lost(t, l); !errors.Is(err, session.ErrLost) {
			t.Errorf("the lease ended with %v", err)
		}
	})
}

// Of several holders one must be named. A waiter is broken only by name.
func TestBreakSeveral(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		rw, err := rwlock.New(w.manager(t), w.top+"/rw")
		expect.NoError(t, err)
		var readers []*queue.Lease
		for range 3 {
			l, err := rw.Reader().Acquire(t.Context())
			expect.NoError(t, err)
			readers = append(readers, l)
		}
		waiter := uuidC + "__WRIT__0000000009"
		w.own(t, "rw/"+waiter, dataB)
		node := func(i int) string { return readers[i].Path()[len(w.top+"/rw/"):] }
		got := w.call(t.Context(), "break", "--force", "--yes", w.top+"/rw")
		got.want(t, codeUsage, "has 3 holders", "--node "+node(0), "--node "+node(2))
		if strings.Contains(got.err, waiter) {
			t.Errorf("the waiter is listed: %s", got.err)
		}
		w.call(t.Context(), "break", "--force", "--yes", "--node", node(1), w.top+"/rw").want(t, 0)
		if err := lost(t, readers[1]); !errors.Is(err, session.ErrLost) || readers[0].Err() != nil {
			t.Errorf("%v, %v", err, readers[0].Err())
		}
		w.call(t.Context(), "break", "--force", "--yes", "--node", waiter, w.top+"/rw").want(t, 0)
		if w.exists(t, "rw/"+waiter) || readers[0].Err() != nil {
			t.Error("the waiter is there, or a reader is not")
		}
	})
}

// Break never deletes a node that has come to the place of the one that it has shown.
func TestBreakReplaced(t *testing.T) {
	const node = "lock-0000000000" // which has no uuid
	srv := zktest.Start(t)
	w := newWorld(t, srv.Addr(), "/test")
	w.own(t, "l/"+node, dataA)
	held := srv.HoldRequest(w.nth(2, zktest.Any(zktest.OpGetData)))
	p := w.begin(t, "", "break", "--force", "--yes", "/test/l")
	<-held.Hit()
	w.remove(t, "l/"+node)
	w.own(t, "l/"+node, dataB)
	held.Release()
	p.wait(t, codeNo)
	p.prints(t, "It was not deleted")
	if !w.exists(t, "l/"+node) {
		t.Error("the new node was deleted")
	}
}

// A holder that hears no request is not asked: the message would replace its name, by which others find the leader of a latch.
func TestBreakSparesTheDeaf(t *testing.T) {
	w := newWorld(t, servedInProcess(t), "/test")
	for node, data := range map[string]string{"latch-": "10.0.0.7:8080"} {
		p := node + "/" + uuidA + node + "0000000000"
		w.own(t, p, data)
		w.call(t.Context(), "break", "/test/"+node).want(t, codeFailed, "does not listen to requests", "--force deletes the node")
		if got, stat, err := w.admin.Get("/test/" + p); err != nil || string(got) != data || stat.Version > 0 {
			t.Errorf("%q, %+v, %v", got, stat, err)
		}
	}
}

// nth matches the request number n of other clients than the test's, among those that match.
func (w *world) nth(n int32, match zktest.Match) zktest.Match {
	var seen atomic.Int32
	return func(r zktest.Request) bool {
		return r.Session != w.admin.SessionID() && match(r) && seen.Add(1) == n
	}
}

// If the reply to the delete is lost, break does not say that the holder has left by itself.
func TestBreakReplyLost(t *testing.T) {
	srv := zktest.Start(t)
	w := newWorld(t, srv.Addr(), "/test")
	l := w.acquire(t, "l")
	cut := srv.CutAfterCommit(zktest.Any(zktest.OpDelete))
	got := w.call(t.Context(), "break", "--force", "--yes", w.top+"/l")
	got.want(t, 0)
	<-cut.Hit()
	if err := lost(t, l); !errors.Is(err, session.ErrLost) {
		t.Errorf("the lease ended with %v", err)
	}
	if !strings.Contains(got.stdout, "is gone: it was deleted, or ") || strings.Contains(got.stdout, "by itself") {
		t.Errorf("break has deleted the node, and says:\n%s", got.stdout)
	}
}

// A waiter that has got the lock when the operator types yes is spared.
func TestBreakWaiterHoldsByNow(t *testing.T) {
	w := newWorld(t, servedInProcess(t), "/test")
	w.own(t, firstHolder, dataA)
	w.own(t, "l/"+uuidB+"lock-0000000001", dataB)
	cmd := exec.Command(os.Args[0], "break", "--force", "--node", uuidB+"lock-0000000001", w.top+"/l")
	typed, err := cmd.StdinPipe()
	expect.NoError(t, err)
	p := startCommand(t, w.addr, cmd)
	p.prints(t, "Type yes")
	w.remove(t, firstHolder)
	_, _ = io.WriteString(typed, "yes\n")
	p.wait(t, codeNo)
	p.prints(t, " has got the lock meanwhile. Nothing was deleted")
	if !w.exists(t, "l/"+uuidB+"lock-0000000001") {
		t.Error("the node was deleted")
	}
}
