//go:build linux || darwin || freebsd

package supervise

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A signal that came before the command does not get lost: the command does not start.
func TestSignalBefore(t *testing.T) {
	signals := Catch()
	defer signals.Stop()
	if err := unix.Kill(unix.Getpid(), unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); len(signals.c) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the signal does not come")
		}
	}
	// There is no such program, so the attempt to start it would be an error.
	got, err := Run(nil, Command{Path: "/nonsense"}, nil, signals, Options{})
	if err != nil || got.Status != 128+int(unix.SIGTERM) {
		t.Errorf("%+v, %v: want the status of SIGTERM", got, err)
	}
}
