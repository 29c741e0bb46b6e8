//go:build linux || darwin || freebsd

package supervise

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is a command and the processes of its group.
type group struct {
	id   int    // of the group, and of the command
	path string // of the command's program
	*starter
	ended chan struct{} // closed when the command has ended

	status syscall.WaitStatus // of the command; valid once ended is closed
	err    error              // why status is not valid
}

// startGroup starts the starter of a command as the leader of a new process group. If tty is not nil, the group
// becomes the terminal's foreground group.
//
// The kernel sends the parent-death signal when the thread that has started the command ends. So that
// thread is locked until the command has ended.
func startGroup(c Command, tty *terminal) (*group, error) {
	cmd := &exec.Cmd{
		Path: c.Path, Args: c.Args, Env: c.Env,
		Stdin: c.In, Stdout: c.Out, Stderr: c.Err,
		WaitDelay:   copyDelay,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	starter, begun, err := newStarter(cmd)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	dieWithParent(cmd.SysProcAttr)
	if tty != nil {
		cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, tty.fd()
	}
	g := &group{path: c.Path, starter: starter, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		if err == nil {
			g.id = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return // ends the thread, too
		}
		defer close(g.ended)
		g.wait(cmd)
	}()
	err = <-started
	begun()
	go g.read()
	if err != nil {
		g.starter.close()
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	return g, nil
}

func (g *group) wait(cmd *exec.Cmd) {
	err := cmd.Wait()
	if cmd.ProcessState == nil {
		g.err = err
		return
	}
	g.status, _ = cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// exitStatus returns the command's status as a shell would. The command must have ended.
func (g *group) exitStatus() (int, error) {
	if g.err != nil {
		return 0, g.err
	}
	if g.status.Signaled() {
		return 128 + int(g.status.Signal()), nil
	}
	return g.status.ExitStatus(), nil
}

// signal sends a signal to all processes of the group. errGone says that there is none.
func (g *group) signal(sig syscall.Signal) error {
	err := unix.Kill(-g.id, sig)
	if errors.Is(err, unix.ESRCH) {
		return errGone
	}
	return err
}

var errGone = errors.New("there is no such process")

// running reports whether the command runs.
func (g *group) running() bool {
	select {
	case <-g.ended:
		return false
	default:
		return true
	}
}

// anyone reports whether any process of the group is there, including the command until its end was
// noticed. killed says that the group has got SIGKILL. Then dead processes do not count, where the
// system tells which are dead.
func (g *group) anyone(killed bool) bool {
	if g.running() {
		return true
	}
	reap(g.id)
	switch {
	case errors.Is(g.signal(0), errGone):
		return false
	case killed:
		return g.alive()
	}
	return true
}
