//go:build linux || darwin || freebsd

package cli

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// A pipe that nobody reads any more, as after "| head" or the end of a logger, ends neither turnstile nor its command: not
// with warnings of turnstile, and not at the end. The lock is released as always.
func TestRunReaderGone(t *testing.T) {
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	proxy := testserver.Proxy(t)
	cmd := exec.Command(os.Args[0], "run", "-vv", path, "--", "sh", "-c",
		"exec >/dev/null 2>&1; trap '"+j.once("usr1")+"' USR1; trap 'exit 7' TERM; "+j.once("A")+"; while :; do sleep 0.02; done")
	cmd.Stdout, cmd.Stderr = w, w
	p := startCommand(t, proxy.Addr(), cmd)
	j.await(t, "A")
	r.Close()
	// A new connection is logged, and so is the lost one. The signal comes through only after that.
	proxy.Disconnect()
	proxy.ResetRequests()
	zktest.Eventually(t, patience, "another connection", func() bool { return len(proxy.Requests()) > 0 || !p.running() })
	p.signal(t, syscall.SIGUSR1)
	j.await(t, "usr1")
	p.signal(t, syscall.SIGTERM)
	p.wait(t, 7)
	testserver.WaitChildren(t, path, 0)
}
