//go:build unix

package exampletest

import (
	"errors"
	"os/exec"
	"syscall"
)

// ownGroup has the command, and all processes that it starts, in a process group of their own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// groupEnded reports whether no process of the group is there any more.
func groupEnded(cmd *exec.Cmd) bool {
	return errors.Is(syscall.Kill(-cmd.Process.Pid, 0), syscall.ESRCH)
}
