// Package pausetest tests what a process finds when it goes on after a pause that was longer than its
// sessions live:
//
//	func TestPaused(t *testing.T) {
//		pausetest.Run(t, func(server, dir string) {
//			// get a lock in dir
//			pausetest.Pause(t)
//			// the first look: the lock must be lost
//		})
//	}
package pausetest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/fakeclocks"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// The environment of the process that is paused: the address of the server, and the path of its locks.
const (
	serverEnv = "TURNSTILE_TEST_PAUSED"
	dirEnv    = "TURNSTILE_TEST_PAUSED_DIR"
)

// Timeout is the session timeout of the process that is paused. On a busy machine its sessions live until the
// pause, and the test sees them then.
const Timeout = 10 * time.Second

// Run runs the calling test once more, in a process of its own, and there it calls paused. When that process
// has paused, Run waits until the servers have expired all of its sessions that contend below dir, and
// lets it go on. It is a long test.
func Run(t *testing.T, paused func(server, dir string)) {
	t.Helper()
	if !isPaused(paused) {
		longtest.Only(t)
		run(t, os.Args[0], nil, func(time.Duration) error { return nil })
	}
}

// Suspend is [Run] with a process that finds that its machine was suspended meanwhile: the clock by which
// timers fire has stood still, and another one tells for how long. The binary comes from package fakeclocks:
// pkg and knows are the arguments of [fakeclocks.Build].
func Suspend(t *testing.T, pkg string, knows bool, paused func(server, dir string)) {
	t.Helper()
	if !isPaused(paused) {
		longtest.Only(t)
		clocks := fakeclocks.New(t)
		run(t, fakeclocks.Build(t, pkg, knows), []string{clocks.Env()}, clocks.SetAsleep)
	}
}

// isPaused calls paused if this is the process that is paused.
func isPaused(paused func(server, dir string)) bool {
	server := os.Getenv(serverEnv)
	if server != "" {
		paused(server, os.Getenv(dirEnv))
	}
	return server != ""
}

// run runs the calling test in a process of the given binary. It calls wake with the length of the pause before
// it lets the process go on.
func run(t *testing.T, binary string, env []string, wake func(time.Duration) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*Timeout+6*testserver.Patience)
	defer cancel()
	dir := testserver.Path(t)
	cmd := exec.CommandContext(ctx, binary, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), env...), serverEnv+"="+testserver.Server(t).Addr(0), dirEnv+"="+dir,
		"GODEBUG=asyncpreemptoff=1", "GOMAXPROCS=1") // so that the pause hits the right place; the check does not depend on it
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	expect.NoError(t, cmd.Start())
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	if !status.Stopped() {
		_ = cmd.Wait()
		t.Fatalf("it ended before it stopped:\n%s", &log)
	}
	if contenders(t, dir) == 0 {
		t.Error("it held nothing when it stopped")
	}
	zktest.Eventually(t, Timeout+testserver.Patience, "the end of its sessions", func() bool { return contenders(t, dir) == 0 })
	expect.NoError(t, wake(time.Since(stopped)))
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v:\n%s", err, &log)
	}
}

// Pause stops this process, and returns when it goes on.
//
// The signal goes to this thread, which therefore stops before the call returns. The Go runtime does not know
// of the call, so the calling goroutine is the first to run after the pause.
func Pause(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid, tid := uintptr(syscall.Getpid()), uintptr(syscall.Gettid())
	if _, _, failed := syscall.RawSyscall(syscall.SYS_TGKILL, pid, tid, uintptr(syscall.SIGSTOP)); failed != 0 {
		t.Fatal(failed)
	}
}

// contenders counts the contenders in a directory and below it.
func contenders(t *testing.T, dir string) int {
	names, _, err := testserver.Admin(t).Children(dir)
	if errors.Is(err, zk.ErrNoNode) {
		return 0
	}
	expect.NoError(t, err)
	n := 0
	for _, name := range names {
		if _, ok := queue.ParseNode(name); ok {
			n++
		} else {
			n += contenders(t, path.Join(dir, name))
		}
	}
	return n
}
