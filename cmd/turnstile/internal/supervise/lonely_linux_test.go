package supervise

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/turnstile-go/turnstile/zktest"
)

// lonelyRunner returns a runner whose guard was killed.
func lonelyRunner(t *testing.T) *runner {
	t.Helper()
	guard, err := StartGuard(noStreams(t)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(guard.Close)
	if err := guard.process.Kill(); err != nil {
		t.Fatal(err)
	}
	return &runner{Options: Options{Log: slog.New(slog.DiscardHandler)}, guard: guard}
}

// A guard that is killed before it has told that it started the command leaves descendants too. They are ended.
func TestGuardKilledBeforeItsAnswer(t *testing.T) {
	r := lonelyRunner(t)
	left := exec.Command("sleep", "1000")
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); r.lonely() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("what the guard has left goes on")
		_ = left.Process.Kill()
		<-done
	}
}

// Once the command has ended, its number can be that of other processes.
func TestGuardKilledAfterTheCommand(t *testing.T) {
	out, err := exec.Command("sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		t.Fatal(err)
	}
	var stranger int
	if _, err := fmt.Sscan(string(out), &stranger); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Kill(stranger, unix.SIGKILL) }()
	zktest.Eventually(t, 10*time.Second, "a group", func() bool { return unix.Kill(-stranger, 0) == nil })
	r := lonelyRunner(t)
	if err := exec.Command("sleep", "1000").Start(); err != nil { // a descendant
		t.Fatal(err)
	}
	r.group, r.ended = stranger, true
	r.lonely()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", stranger))
	if p, ok := parseStat(stat); err != nil || !ok || p.dead {
		t.Errorf("the process of somebody else was killed: %s, %v", stat, err)
	}
}
