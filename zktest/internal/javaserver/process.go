package javaserver

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
)

// A process is one run of a server.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once the process is gone and reaped
}

// startProcess starts cmd as a child process. On Linux the child does not outlive this process.
func startProcess(cmd *exec.Cmd) (*process, error) {
	dieWithParent(cmd)
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux kills the child when the thread that has started it ends. The Go runtime
		// ends idle threads, but not one that a goroutine is locked to.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // the log says why it ended
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// running reports whether the process has not ended. It returns false for nil.
func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// signal sends sig. It does nothing if the process has ended.
func (p *process) signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// kill ends the process with SIGKILL and waits until it is gone.
func (p *process) kill() error {
	if err := p.signal(os.Kill); err != nil {
		return err
	}
	<-p.done
	return nil
}
