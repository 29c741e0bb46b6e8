//go:build linux

package nemesis

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// process is one life of a worker. One goroutine at a time uses it.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr string        // file
	done   chan struct{} // closed when it is gone, and all that it has said is heard, after what follows is set
	err    error         // how it ended
	died   int64         // it does nothing after this
	killed bool          // by us
}

// startProcess starts this test's binary as a worker.
func startProcess(s settings, dir string, listen func(io.Reader)) (*process, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command("/proc/self/exe"), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	p.stderr = filepath.Join(dir, fmt.Sprintf("worker-%d-%d.log", s.Worker, s.Life))
	log, err := os.Create(p.stderr)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	p.cmd.Stderr = log
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	said, stdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	p.cmd.Stdout = stdout
	// A stopped process does not notice that its parent has ended, so the kernel kills it then.
	// To the kernel, the parent is the thread that started it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		defer said.Close()
		listen(said)
	}()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			p.died = now()
			<-heard
			close(p.done)
		}
	}()
	return p, <-started
}

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) signal(sig os.Signal) { _ = p.cmd.Process.Signal(sig) } // it may be gone

func (p *process) pause()  { p.signal(syscall.SIGSTOP) }
func (p *process) resume() { p.signal(syscall.SIGCONT) }

func (p *process) kill() {
	p.killed = true
	p.signal(syscall.SIGKILL)
	<-p.done
}

// tell gives the worker an order. It is told to rest with its session open.
func (p *process) tell(order string) { _, _ = io.WriteString(p.stdin, order+"\n") }

// end has the process end by itself, or kills it when that takes too long.
func (p *process) end() {
	_ = p.stdin.Close()
	timer := time.AfterFunc(certainly, func() { p.signal(syscall.SIGQUIT) }) // shows where it hangs
	defer timer.Stop()
	last := time.AfterFunc(2*certainly, func() { p.signal(syscall.SIGKILL) })
	defer last.Stop()
	<-p.done
}

// log is the end of what the process has printed.
func (p *process) log() []byte {
	log, _ := os.ReadFile(p.stderr)
	return log[max(0, len(log)-16<<10):]
}
