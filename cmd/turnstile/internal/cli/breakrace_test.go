package cli

import (
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

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

// becoming is a lock with a holder, and a waiter of the library that gets the lock when the holder leaves.
type becoming struct {
	node   string // of the waiter
	leases chan *queue.Lease
}

const firstHolder = "l/" + uuidA + "lock-0000000000"

func (w *world) becoming(t *testing.T) *becoming {
	t.Helper()
	w.own(t, firstHolder, dataA)
	mx, err := zklock.New(w.manager(t), w.top+"/l")
	if err != nil {
		t.Fatal(err)
	}
	b := &becoming{leases: make(chan *queue.Lease, 1)}
	go func() {
		if l, err := mx.Acquire(t.Context()); err == nil {
			b.leases <- l
		}
	}()
	zktest.Eventually(t, testserver.Patience, "a waiter", func() bool {
		names, _, _ := w.admin.Children(w.top + "/l")
		i := slices.IndexFunc(names, func(name string) bool { return !strings.HasPrefix(name, uuidA) })
		if i >= 0 {
			b.node = names[i]
		}
		return i >= 0
	})
	return b
}

// If a waiter has got the lock when the operator types yes, break shows it as a holder and asks again.
func TestBreakWaiterHoldsByNow(t *testing.T) {
	for answer, code := range map[string]int{"no\n": codeNo, "yes\n": codeOK} {
		t.Run(strings.TrimSpace(answer), func(t *testing.T) {
			w := newWorld(t, servedInProcess(t), "/test")
			b := w.becoming(t)
			in, typed := io.Pipe()
			out, errs := &buffer{}, &buffer{}
			app := &App{In: in, Out: out, Err: errs, Env: lookup([]string{"TURNSTILE_ZK=" + w.addr})}
			done := make(chan int, 1)
			go func() { done <- app.Run(t.Context(), []string{"break", "--force", "--node", b.node, w.top + "/l"}) }()
			questions := func(n int) func() bool {
				return func() bool { return strings.Count(errs.String(), "Type yes") == n }
			}
			zktest.Eventually(t, testserver.Patience, "the question", questions(1))
			w.remove(t, firstHolder)
			l := <-b.leases
			_, _ = io.WriteString(typed, "yes\n")
			zktest.Eventually(t, testserver.Patience, "the second question", questions(2))
			if err := l.Err(); err != nil {
				t.Errorf("the holder has lost its lock: %v", err)
			}
			for _, text := range []string{" waits for /test/l.", " has got the lock meanwhile.", " holds /test/l.", "It uses the Go library turnstile."} {
				if !strings.Contains(out.String(), text) {
					t.Errorf("stdout lacks %q:\n%s", text, out)
				}
			}
			_, _ = io.WriteString(typed, answer)
			if got := <-done; got != code {
				t.Errorf("status %d, want %d: %s", got, code, errs)
			}
			if w.exists(t, "l/"+b.node) != (code == codeNo) {
				t.Errorf("after %q, the node is there: %v", answer, w.exists(t, "l/"+b.node))
			}
		})
	}
}
