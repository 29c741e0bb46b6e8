//go:build linux || darwin || freebsd

package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// Streams are the command's. An *os.File is the command's own. Others are copied from and to.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Guard is the guard as turnstile sees it. Turnstile alone has the other end of the socket. So the guard reads its end
// when turnstile ends, however that happens.
type Guard struct {
	streams Streams
	cmd     *exec.Cmd
	pipe    *os.File
	reports chan report   // closed after the guard's last report
	quit    chan struct{} // closed by Close: nobody takes reports any more
	ended   chan struct{} // closed when the guard has ended
	noted   chan struct{} // a session was noted
	others  map[int]bool  // the children that turnstile had before: a shell that has become turnstile leaves it its own
	close   sync.Once
	mu      sync.Mutex // held while an order is written
	noting  sync.Mutex // held while a session is noted
}

// copyDelay bounds how long streams that are not files are copied after the command's end.
const copyDelay = time.Second

// StartGuard starts a guard for one command, which gets these streams. The caller must call Close.
//
// The guard has a process group of its own, so that a terminal does not signal it. It stays in turnstile's session, because
// the command has to be in the session of the terminal.
func StartGuard(streams Streams) (*Guard, error) {
	program, err := self()
	if err != nil {
		return nil, err
	}
	ours, theirs, err := socketpair()
	if err != nil {
		return nil, fmt.Errorf("start the guard of the command: %w", err)
	}
	// The number is one that is free here, so turnstile's caller has passed no file with it. Package os/exec would give
	// the lowest numbers to the guard's files, over those of the caller.
	defer unix.Close(theirs)
	g := &Guard{
		streams: streams, pipe: ours, reports: make(chan report, 16), quit: make(chan struct{}), ended: make(chan struct{}),
		noted: make(chan struct{}, 1), others: children(),
	}
	g.cmd = &exec.Cmd{
		Path: program, Args: []string{guardName, strconv.Itoa(theirs)},
		Stdin: streams.In, Stdout: streams.Out, Stderr: streams.Err,
		WaitDelay:   copyDelay,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	// A guard that is stopped when turnstile dies goes on.
	dieWithParent(g.cmd.SysProcAttr, unix.SIGCONT)
	if err := g.start(); err != nil {
		ours.Close()
		return nil, fmt.Errorf("start the guard of the command: %w", err)
	}
	go g.read()
	return g, nil
}

// children returns the children of this process that are not dead.
func children() map[int]bool {
	found := make(map[int]bool)
	if lookAround() != nil {
		return found
	}
	for _, p := range descendants(nil) {
		if p.parent == os.Getpid() {
			found[p.pid] = true
		}
	}
	return found
}

// start starts the process. The parent-death signal comes when the thread ends that has started it. So that thread is
// locked until the guard has ended.
func (g *Guard) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := g.cmd.Start()
		started <- err
		if err == nil {
			_ = g.cmd.Wait()
			close(g.ended)
		}
	}()
	return <-started
}

// socketpair returns two connected sockets. The second one is not closed in new processes.
func socketpair() (ours *os.File, theirs int, err error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, 0, err
	}
	_ = unix.SetNonblock(fds[0], true) // so that deadlines work
	return os.NewFile(uintptr(fds[0]), "guard"), fds[1], nil
}

// self returns the path of this program, even if its file was replaced meanwhile.
func self() (string, error) {
	const linux = "/proc/self/exe"
	if _, err := os.Stat(linux); err == nil {
		return linux, nil
	}
	if path, err := os.Executable(); err == nil {
		return path, nil
	}
	return exec.LookPath(os.Args[0]) // Linux without /proc
}

// read passes the guard's reports on until there are no more.
func (g *Guard) read() {
	defer close(g.reports)
	for in := json.NewDecoder(g.pipe); ; {
		var r report
		if in.Decode(&r) != nil {
			return
		}
		if r.Noted {
			poke(g.noted)
			continue
		}
		select {
		case g.reports <- r:
		case <-g.quit:
			return
		}
	}
}

// poke leaves a token in a channel that holds one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Access tells the guard how to reach the servers: see [Prepare].
func (g *Guard) Access(how json.RawMessage) { g.tell(order{Access: how}) }

// noteTime bounds how long Note waits. If the guard is slower, and turnstile is killed before the guard has read the
// session, the servers end the session when it times out.
const noteTime = time.Second

// Note tells the guard of the present session, and returns when the guard knows it. If turnstile dies, the guard ends the
// session as soon as the command and its descendants are dead.
func (g *Guard) Note(s Session) {
	g.noting.Lock()
	defer g.noting.Unlock()
	select {
	case <-g.noted: // of a Note that did not wait for it
	default:
	}
	g.tell(order{Session: &s})
	late := time.NewTimer(noteTime)
	defer late.Stop()
	select {
	case <-g.noted:
	case <-g.ended:
	case <-late.C:
	}
}

// tellTime bounds how long an order is written. The orders of hours fit into the socket.
const tellTime = 5 * time.Second

// tell gives the guard an order. A guard that is stopped goes on: it has to do what turnstile cannot. A guard that does
// not take its orders is killed. Then it is like one that has ended.
func (g *Guard) tell(o order) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.cmd.Process.Signal(unix.SIGCONT)
	_ = g.pipe.SetWriteDeadline(time.Now().Add(tellTime))
	if _, err := g.pipe.Write(line(o)); errors.Is(err, os.ErrDeadlineExceeded) {
		_ = g.cmd.Process.Kill()
	}
}

// Close ends the guard. The command must have ended, or not have been started.
func (g *Guard) Close() {
	g.close.Do(func() {
		g.tell(order{Done: true})
		close(g.quit)
		late := time.AfterFunc(time.Second+copyDelay, func() { _ = g.cmd.Process.Kill() })
		defer late.Stop()
		<-g.ended
		g.pipe.Close()
		for range g.reports {
		}
	})
}
