//go:build linux || darwin || freebsd

package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardName is the guard's argument 0, by which this program knows that it is the guard. Argument 1 is the descriptor of
// its end of the socket.
const guardName = "turnstile-guard"

// order is a line from turnstile to the guard. Fields that are not set change nothing.
type order struct {
	// Until is when the guard must kill the command if it hears nothing more, by clock.
	Until time.Duration `json:",omitempty"`
	Start *start        `json:",omitempty"`
	// Signals go to the command's process group, or to all descendants.
	Signals []syscall.Signal `json:",omitempty"`
	All     bool             `json:",omitempty"`
	// Kill has the guard kill all descendants, until none is left.
	Kill bool `json:",omitempty"`
	// Note is what to free if turnstile dies: see [Guard.Note].
	Note json.RawMessage `json:",omitempty"`
	// Done ends the guard.
	Done bool `json:",omitempty"`
}

// start is an order to start the command, unless the time of Until is over. The guard answers with Started, Late or Failed.
type start struct {
	Path, Args, Env []byte // lists have a zero byte between; as texts, JSON would change what is not UTF-8
	Group           int    // the process group; 0: a new one
}

// report is a line from the guard to turnstile. One field is set, or Ended with Left and Gone.
type report struct {
	Started int                 `json:",omitempty"` // the process id of the command
	Late    bool                `json:",omitempty"` // the command was not started
	Failed  syscall.Errno       `json:",omitempty"` // the command could not be started
	Ended   *syscall.WaitStatus `json:",omitempty"` // the command has ended
	Left    []string            `json:",omitempty"` // what it has left
	Gone    bool                `json:",omitempty"` // the command has ended, and no descendant is left
	Stuck   []string            `json:",omitempty"` // what the guard cannot kill
}

// Guard is the guard as turnstile sees it. Turnstile alone has the other end of the socket. So the guard reads its end
// when turnstile ends, however that happens.
type Guard struct {
	process *os.Process
	pipe    *os.File
	reports <-chan report // closed after the guard's last report
	Ended   chan struct{} // closed when the guard has ended
	mu      sync.Mutex    // held while an order is written
}

// StartGuard starts a guard for one command, which gets these streams: input, output, errors. The caller must call Close.
//
// The guard has a process group of its own, so that a terminal does not signal it. It stays in turnstile's session, because
// the command has to be in the session of the terminal.
func StartGuard(streams ...*os.File) (*Guard, error) {
	program, err := self()
	if err != nil {
		return nil, err
	}
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("start the guard of the command: %w", err)
	}
	// The guard inherits its end of the socket, as it does all files that turnstile's caller has passed. The number is one
	// that is free here.
	defer unix.Close(fds[1])
	_ = unix.SetNonblock(fds[0], true) // so that deadlines work
	g := &Guard{
		pipe:  os.NewFile(uintptr(fds[0]), "guard"),
		Ended: make(chan struct{}),
	}
	attr := &os.ProcAttr{Files: streams, Sys: &syscall.SysProcAttr{Setpgid: true}}
	dieWithParent(attr.Sys, unix.SIGCONT) // a guard that is stopped when turnstile dies goes on
	started := make(chan error)
	go func() {
		// The parent-death signal comes when the thread ends that has started the process.
		runtime.LockOSThread()
		process, err := os.StartProcess(program, []string{guardName, strconv.Itoa(fds[1])}, attr)
		g.process = process
		started <- err
		if err == nil {
			_, _ = process.Wait()
			close(g.Ended)
		}
	}()
	if err := <-started; err != nil {
		g.pipe.Close()
		return nil, fmt.Errorf("start the guard of the command: %w", err)
	}
	g.reports = lines[report](g.pipe)
	return g, nil
}

// lines returns what the other process writes, and is closed at its end.
func lines[T any](pipe *os.File) <-chan T {
	out := make(chan T, 16) // more than the reports that there ever are
	go func() {
		defer close(out)
		for in := json.NewDecoder(pipe); ; {
			var line T
			if in.Decode(&line) != nil {
				return
			}
			out <- line
		}
	}()
	return out
}

// Note tells the guard what the function that [Helper] was given gets if turnstile dies, once the command and its
// descendants are dead. The latest note counts. It gets through even if turnstile dies as soon as Note has returned.
func (g *Guard) Note(what any) {
	data, _ := json.Marshal(what) // structs of texts and numbers
	g.tell(order{Note: data})
}

// tellTime bounds how long an order is written. The orders of hours fit into the socket.
const tellTime = 5 * time.Second

// tell gives the guard an order. A guard that is stopped goes on: it has to do what turnstile cannot. A guard that does
// not take its orders is killed. Then it is like one that has ended.
func (g *Guard) tell(o order) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.process.Signal(unix.SIGCONT)
	_ = g.pipe.SetWriteDeadline(time.Now().Add(tellTime))
	if err := json.NewEncoder(g.pipe).Encode(o); errors.Is(err, os.ErrDeadlineExceeded) {
		_ = g.process.Kill()
	}
}

// Close ends the guard. The command must have ended, or not have been started.
func (g *Guard) Close() {
	g.tell(order{Done: true})
	late := time.AfterFunc(2*time.Second, func() { _ = g.process.Kill() })
	defer late.Stop()
	<-g.Ended
	g.pipe.Close()
	for range g.reports {
	}
}

// clock returns the time since some moment that all processes of this machine agree on. It goes on
// while the machine is suspended, where the system has such a clock.
func clock() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(clockID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
