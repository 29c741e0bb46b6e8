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
	"sync"
	"syscall"
	"time"
)

// workerCommand is this test's binary, as a worker with the locks of a contestant.
func workerCommand(contestant string, s settings) (*exec.Cmd, error) {
	text, err := json.Marshal(s)
	cmd := exec.Command("/proc/self/exe", string(text))
	cmd.Env = append(os.Environ(), workerEnv+"="+contestant)
	return cmd, err
}

// process is one life of a worker.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr string        // file
	heard  chan struct{} // closed when all that it has said is heard
	done   chan struct{} // closed when it is gone, after what follows is set
	err    error         // how it ended
	died   int64         // it does nothing after this
	killed bool          // by us
}

func startProcess(cmd *exec.Cmd, stderr string, listen func(io.Reader)) (*process, error) {
	out, err := os.Create(stderr)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own
	cmd.Stderr = out
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	said, stdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	cmd.Stdout = stdout
	// A stopped process does not notice that its parent has ended, so the kernel kills it then.
	// To the kernel, the parent is the thread that started it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p := &process{cmd: cmd, stdin: stdin, stderr: stderr, heard: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(p.heard)
		defer said.Close()
		listen(said)
	}()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			p.died = now()
			<-p.heard
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

func (p *process) kill() {
	p.killed = true
	p.signal(syscall.SIGKILL)
	<-p.done
}

// end has the process end by itself, or kills it when that takes too long.
func (p *process) end(within time.Duration) error {
	_ = p.stdin.Close()
	timer := time.AfterFunc(within, func() { p.signal(syscall.SIGQUIT) }) // shows where it hangs
	defer timer.Stop()
	last := time.AfterFunc(2*within, func() { p.signal(syscall.SIGKILL) })
	defer last.Stop()
	<-p.done
	return p.verdict()
}

// verdict is an error if the process ended otherwise than killed by us or as told to.
func (p *process) verdict() error {
	if p.err == nil || p.killed {
		return nil
	}
	return fmt.Errorf("a worker ended by itself: %w; the end of its log:\n%s", p.err, p.log(16<<10))
}

// log is the end of what the process has printed.
func (p *process) log(most int) []byte {
	log, _ := os.ReadFile(p.stderr)
	return log[max(0, len(log)-most):]
}

// crew are the workers. One goroutine at a time uses it.
type crew struct {
	contestant string
	listen     func(io.Reader)
	settings   settings // but for whose they are
	servers    [workers]string
	dir        string
	now        [workers]*process
	lives      [workers][]*process
}

// start gives a worker a process, which begins at rest.
func (c *crew) start(i int) error {
	s := c.settings
	s.Worker, s.Life, s.Servers = i, len(c.lives[i])+1, c.servers[i]
	cmd, err := workerCommand(c.contestant, s)
	if err != nil {
		return err
	}
	p, err := startProcess(cmd, filepath.Join(c.dir, fmt.Sprintf("worker-%d-%d.log", s.Worker, s.Life)), c.listen)
	if err != nil {
		return err
	}
	c.now[i] = p
	c.lives[i] = append(c.lives[i], p)
	return nil
}

func (c *crew) kill(i int) { c.now[i].kill() }

// close has a process end by itself in the middle of its work.
func (c *crew) close(i int) { _ = c.now[i].end(certainly) }

func (c *crew) pause(i int) { c.now[i].signal(syscall.SIGSTOP) }

func (c *crew) resume(i int) { c.now[i].signal(syscall.SIGCONT) }

// alive reports whether a worker has a process.
func (c *crew) alive(i int) bool { return c.now[i] != nil && c.now[i].alive() }

// lifeOf names the present process of a worker.
func (c *crew) lifeOf(i int) lifeID { return lifeID{i, len(c.lives[i])} }

// tell gives a worker an order. It is told to rest with its session open.
func (c *crew) tell(i int, order string) { _, _ = io.WriteString(c.now[i].stdin, order+"\n") }

// end ends all processes, and returns the errors of all lives.
func (c *crew) end(within time.Duration) []error {
	var all sync.WaitGroup
	for _, p := range c.now {
		all.Go(func() { _ = p.end(within) })
	}
	all.Wait()
	var errs []error
	for _, lives := range c.lives {
		for _, p := range lives {
			if err := p.verdict(); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// killAll is for a test that fails half-way.
func (c *crew) killAll() {
	for _, p := range c.now {
		if p != nil && p.alive() {
			p.kill()
		}
	}
}

// deaths returns when each life ended that has.
func (c *crew) deaths() map[lifeID]int64 {
	at := make(map[lifeID]int64)
	for i, lives := range c.lives {
		for j, p := range lives {
			if !p.alive() {
				at[lifeID{i, j + 1}] = p.died
			}
		}
	}
	return at
}
