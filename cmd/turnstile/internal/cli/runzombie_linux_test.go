package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// Turnstile is the parent of processes whose own parent has ended. It waits for them when they end.
func TestRunReaps(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	p := start(t, server(t), "run", testserver.Path(t), "--", "sh", "-c",
		"for i in 1 2 3 4 5 6 7 8 9; do (true &); (setsid true &); done; "+j.once("A")+"; exec sleep 1000")
	j.await(t, "A")
	zktest.Eventually(t, patience, "the end of all dead processes", func() bool {
		for _, c := range childrenOf(p.cmd.Process.Pid) {
			if c.state == "Z" {
				return false
			}
		}
		return true
	})
	p.signal(t, syscall.SIGTERM)
	p.wait(t, 143)
}

// daemonEnv has the test binary be a command that leaves a daemon: see asDaemon.
const daemonEnv = "TURNSTILE_TEST_DAEMON"

// asDaemon starts a process that ends at once, does not wait for it, and leaves the group of the
// command. The dead process stays in the group.
func asDaemon() {
	dead := exec.Command("true")
	if dead.Start() != nil {
		os.Exit(1)
	}
	// WNOWAIT leaves the dead process as it is.
	if err := unix.Waitid(unix.P_PID, dead.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		os.Exit(1)
	}
	if _, err := syscall.Setsid(); err != nil {
		os.Exit(1)
	}
	_ = os.WriteFile(os.Getenv(daemonEnv), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
	select {}
}

// A dead process of the command's group, whose parent does not wait for it, does not keep the lock.
func TestRunDeadProcess(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	p := start(t, server(t), "run", "--grace", "2s", testserver.Path(t), "--", "sh", "-c",
		daemonEnv+"="+file+" "+os.Args[0]+" </dev/null >/dev/null 2>&1 & while ! test -s "+file+"; do sleep 0.02; done")
	daemon := pidOf(t, file)
	defer func() { _ = syscall.Kill(daemon, syscall.SIGKILL) }()
	p.wait(t, 0)
	if gone(daemon) {
		t.Error("the daemon is dead, too")
	}
}
