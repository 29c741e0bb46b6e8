//go:build darwin || freebsd

package supervise

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	clockID = unix.CLOCK_MONOTONIC
	adopts  = false // descendants that leave the command's group are not found here
)

func self() (string, error) { return os.Executable() }
func Adopt() error          { return nil }

// There is no parent-death signal here. The guard alone ends the command when turnstile is dead.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}

func rename(string)           {}
func ignoredByParent() uint64 { return 0 }
func descendants() []process  { return nil }

type process struct{ pid, parent, group int }

func (process) String() string { return "" }
