//go:build linux || darwin || freebsd

package supervise

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardName is the guard's argument 0, by which this program knows that it is the guard. Argument 1 is the descriptor of
// its end of the socket, and the others are signals that stay ignored.
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
	// Access is how to reach the servers, for the Prepare of Helper. Session is the present session. The guard answers
	// with Noted.
	Access  json.RawMessage `json:",omitempty"`
	Session *Session        `json:",omitempty"`
	// Done ends the guard.
	Done bool `json:",omitempty"`
}

// start is an order to start the command, unless the deadline has passed. The guard answers with Started, Late or Failed.
type start struct {
	Deadline   time.Duration
	Path       []byte // bytes, since JSON would change what is not UTF-8
	Args, Env  [][]byte
	Foreground bool // the command's group becomes the terminal's foreground group
}

// report is a line from the guard to turnstile. One field is set, or Ended and Left.
type report struct {
	Noted   bool          `json:",omitempty"` // the guard knows the session
	Started int           `json:",omitempty"` // the process id of the command, which is that of its group
	Late    bool          `json:",omitempty"` // the command was not started: the deadline has passed
	Failed  syscall.Errno `json:",omitempty"` // the command could not be started

	Stopped   syscall.Signal `json:",omitempty"` // a signal has stopped the command
	Continued bool           `json:",omitempty"` // the command goes on

	Ended *syscall.WaitStatus `json:",omitempty"` // the command has ended
	Left  []string            `json:",omitempty"` // what it has left
	Gone  bool                `json:",omitempty"` // the command has ended, and no descendant is left
	Stuck []string            `json:",omitempty"` // descendants that the guard may not kill, when no others are left
}

// line returns an order or a report as a line.
func line(v any) []byte {
	data, _ := json.Marshal(v) // these types have no values that JSON cannot represent
	return append(data, '\n')
}

// Guard is the guard as turnstile sees it. Turnstile alone has the other end of the socket. So the guard reads its end
// when turnstile ends, however that happens.
type Guard struct {
	streams []*os.File
	process *os.Process
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
		streams: streams, pipe: os.NewFile(uintptr(fds[0]), "guard"), reports: make(chan report, 16),
		quit: make(chan struct{}), ended: make(chan struct{}), noted: make(chan struct{}, 1), others: children(),
	}
	args := []string{guardName, strconv.Itoa(fds[1])}
	for _, sig := range keptSignals {
		if signal.Ignored(sig) {
			args = append(args, strconv.Itoa(int(sig)))
		}
	}
	attr := &os.ProcAttr{Files: streams, Sys: &syscall.SysProcAttr{Setpgid: true}}
	dieWithParent(attr.Sys, unix.SIGCONT) // a guard that is stopped when turnstile dies goes on
	started := make(chan error)
	go func() {
		// The parent-death signal comes when the thread ends that has started the process.
		runtime.LockOSThread()
		process, err := os.StartProcess(program, args, attr)
		g.process = process
		started <- err
		if err == nil {
			_, _ = process.Wait()
			close(g.ended)
		}
	}()
	if err := <-started; err != nil {
		g.pipe.Close()
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
			select {
			case g.noted <- struct{}{}:
			default:
			}
			continue
		}
		select {
		case g.reports <- r:
		case <-g.quit:
			return
		}
	}
}

// Ended returns a channel that is closed when the guard has ended.
func (g *Guard) Ended() <-chan struct{} { return g.ended }

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
	_ = g.process.Signal(unix.SIGCONT)
	_ = g.pipe.SetWriteDeadline(time.Now().Add(tellTime))
	if _, err := g.pipe.Write(line(o)); errors.Is(err, os.ErrDeadlineExceeded) {
		_ = g.process.Kill()
	}
}

// Close ends the guard. The command must have ended, or not have been started.
func (g *Guard) Close() {
	g.close.Do(func() {
		g.tell(order{Done: true})
		close(g.quit)
		late := time.AfterFunc(2*time.Second, func() { _ = g.process.Kill() })
		defer late.Stop()
		<-g.ended
		g.pipe.Close()
		for range g.reports {
		}
	})
}

// IsHelper reports whether this process is a guard. Then it must call [Helper] and nothing else.
func IsHelper() bool { return len(os.Args) >= 2 && os.Args[0] == guardName }

// Helper is the whole life of a guard. It returns the exit status.
func Helper(prepare Prepare) int {
	// The command dies with the thread that has started it: see keeper.start.
	runtime.LockOSThread()
	rename(guardName)
	pipe, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return 1
	}
	unix.CloseOnExec(pipe)
	_ = unix.SetNonblock(pipe, true)
	for _, arg := range os.Args[2:] {
		sig, _ := strconv.Atoi(arg)
		signal.Ignore(syscall.Signal(sig))
	}
	catch(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	_ = adopt() // turnstile tells of an error, as it has the same
	k := &keeper{pipe: pipe, alarm: newAlarm(), children: childSignals(), prepare: prepare, tree: tree{blind: lookAround() != nil}}
	k.run()
	k.closeSession()
	return 0
}

// childSignals returns a descriptor that can be read when a child has changed.
func childSignals() int {
	var ends [2]int
	if unix.Pipe(ends[:]) != nil {
		return -1 // run looks around now and then
	}
	for _, fd := range ends {
		unix.CloseOnExec(fd)
		_ = unix.SetNonblock(fd, true)
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGCHLD)
	go func() {
		for range c {
			_, _ = unix.Write(ends[1], []byte{0})
		}
	}()
	return ends[0]
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

// texts and bytesOf convert between strings and what JSON leaves as it is.
func texts(all [][]byte) []string {
	return strings.Split(string(bytes.Join(all, []byte{0})), "\x00")
}

func bytesOf(all []string) [][]byte {
	return bytes.Split([]byte(strings.Join(all, "\x00")), []byte{0})
}
