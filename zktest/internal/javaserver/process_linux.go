package javaserver

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the child when this process ends, for any reason. The child gets a process group of
// its own, so that Ctrl-C does not end it before this process has cleaned up.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
