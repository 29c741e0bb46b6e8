//go:build unix

package javaserver

import (
	"fmt"
	"syscall"
	"time"
)

// pauseWithin is how long the threads of a process may take to stop.
const pauseWithin = 10 * time.Second

// pause stops the process. The signal stops its threads one by one, so pause waits until all of them have stopped.
func (p *process) pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	deadline := time.NewTimer(pauseWithin)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !stopped(p.cmd.Process.Pid) {
		select {
		case <-tick.C:
		case <-p.done:
			return ErrStopped
		case <-deadline.C:
			return fmt.Errorf("process has not stopped within %v", pauseWithin)
		}
	}
	return nil
}

func (p *process) resume() error { return p.signal(syscall.SIGCONT) }
