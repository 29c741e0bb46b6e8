package supervise

import (
	"log/slog"
	"os/exec"
	"testing"
	"time"
)

// A guard that is killed before it has told that it started the command leaves descendants too. They are ended.
func TestGuardKilledBeforeItsAnswer(t *testing.T) {
	guard, err := StartGuard(noStreams(t)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(guard.Close)
	if err := guard.process.Kill(); err != nil {
		t.Fatal(err)
	}
	left := exec.Command("sleep", "1000")
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	r := &runner{Options: Options{Log: slog.New(slog.DiscardHandler)}, guard: guard}
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
