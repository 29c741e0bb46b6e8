//go:build linux || darwin || freebsd

package cli

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/session"
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

// A waiter that has got the lock when the operator types yes is spared.
func TestBreakWaiterHoldsByNow(t *testing.T) {
	w := newWorld(t, servedInProcess(t), "/test")
	w.own(t, firstHolder, dataA)
	w.own(t, "l/"+uuidB+"lock-0000000001", dataB)
	cmd := exec.Command(os.Args[0], "break", "--force", "--node", uuidB+"lock-0000000001", w.top+"/l")
	typed, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
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
