package zktest

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the child when this process ends, however
// it ends; and not before: in a process group of its own it does not see the
// Ctrl-C on which the parent wants to clean up in it.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
