//go:build linux || darwin || freebsd

package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardName is the guard's argument 0, by which this program knows that it is the guard.
const guardName = "turnstile-guard"

// guard is the guard as turnstile sees it: a process that reads lines from a pipe. Turnstile alone
// has the other end. So the pipe ends when turnstile does, however that happens.
type guard struct {
	cmd   *exec.Cmd
	pipe  *os.File
	began time.Duration // by clock
	ended chan struct{} // closed when the process has ended
}

// Lines that the guard reads. Until its first deadline, it only waits for the end of the pipe.
const (
	lineGroup = "group" // and the number of the process group
	lineUntil = "until" // and the deadline, in nanoseconds of clock
	lineDone  = "done"  // there is nothing to kill any more
)

// startGuard starts the guard. It has a session of its own, so that no terminal signals it, and
// it holds on to no file and no directory of the caller.
func startGuard() (*guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	program, err := self()
	if err != nil {
		w.Close()
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Args = []string{guardName}
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.Stdin = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("start the guard of the command: %w", err)
	}
	g := &guard{cmd, w, clock(), make(chan struct{})}
	go func() {
		defer close(g.ended)
		_ = cmd.Wait()
	}()
	return g, nil
}

// self returns the path of this program, even if its file was replaced meanwhile.
func self() (string, error) {
	const linux = "/proc/self/exe"
	if _, err := os.Stat(linux); err == nil {
		return linux, nil
	}
	return os.Executable()
}

// tell writes a line. It does not wait for a guard that is stopped: such a guard finds an earlier
// deadline when it goes on, and kills too early rather than too late.
func (g *guard) tell(word string, n int64) error {
	_ = g.pipe.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_, err := fmt.Fprintf(g.pipe, "%s %d\n", word, n)
	return err
}

// end ends the guard. No process of the group may run any more.
func (g *guard) end() {
	_ = g.tell(lineDone, 0)
	g.pipe.Close()
	late := time.AfterFunc(time.Second, func() { _ = g.cmd.Process.Kill() })
	defer late.Stop()
	<-g.ended
}

// isGuard reports whether this process is a guard.
func isGuard() bool { return len(os.Args) == 1 && os.Args[0] == guardName }

// runGuard is the whole life of a guard. It reads what turnstile writes to its standard input. It
// kills the group when its deadline has passed, or when turnstile has ended without a word.
func runGuard() {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE)
	var s guardState
	buf := make([]byte, 4096)
	for {
		// All that was written is read before the clock is looked at. So a guard that was stopped
		// does not act on an old deadline.
		ready, err := unix.Poll([]unix.PollFd{{Fd: 0, Events: unix.POLLIN}}, s.wait(clock()))
		switch {
		case err != nil && err != unix.EINTR:
			s.kill()
			return
		case err != nil:
		case ready == 0:
			if now := clock(); s.late(now) {
				s.kill()
				s.until = now + guardPoll // the kernel may need a moment
			}
		default:
			n, err := unix.Read(0, buf)
			if n <= 0 && err != unix.EINTR {
				s.kill()
				return
			}
			if s.read(string(buf[:max(n, 0)])); s.done {
				return
			}
		}
	}
}

// guardState is what a guard knows.
type guardState struct {
	rest  string // of a line that has not come to its end
	group int
	until time.Duration // 0: no deadline
	done  bool
}

// guardPoll is how often a guard looks at the clock. A timer alone would not do, since timers stand still
// while a machine is suspended.
const guardPoll = 100 * time.Millisecond

// wait returns how long to wait for further lines, in milliseconds.
func (s *guardState) wait(now time.Duration) int {
	wait := guardPoll
	if s.until != 0 {
		wait = min(wait, s.until-now)
	}
	return int(max(0, (wait+time.Millisecond-1)/time.Millisecond))
}

func (s *guardState) late(now time.Duration) bool { return s.until != 0 && now >= s.until }

// read takes a part of what was written.
func (s *guardState) read(text string) {
	s.rest += text
	for {
		line, rest, ok := strings.Cut(s.rest, "\n")
		if !ok {
			return
		}
		s.rest = rest
		word, number, _ := strings.Cut(line, " ")
		n, _ := strconv.ParseInt(number, 10, 64)
		switch word {
		case lineGroup:
			s.group = int(n)
		case lineUntil:
			s.until = time.Duration(n)
		case lineDone:
			s.done = true
		}
	}
}

func (s *guardState) kill() {
	if s.group > 1 {
		_ = unix.Kill(-s.group, unix.SIGKILL)
	}
}
