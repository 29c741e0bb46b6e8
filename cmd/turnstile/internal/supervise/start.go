//go:build linux || darwin || freebsd

package supervise

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// starterName is argument 0 of a starter, by which this program knows that it is one. The arguments
// are the path of the command's program, and the command's own arguments.
//
// A starter is this program again, in the command's place: it is in the command's group, and
// has its streams and environment. It becomes the command when turnstile tells it to. So the guard
// knows the group and a deadline before the command begins, however slow turnstile is in between.
const starterName = "turnstile-start"

// File descriptors of a starter.
const (
	starterGo     = 3 // turnstile writes deadlines, one a line
	starterReport = 4 // the starter writes lines; closed when it becomes the command
)

// Lines that a starter writes.
const (
	lineReady  = "ready"  // it waits for a deadline
	lineFailed = "failed" // and the error number of execve
)

// starter is a starter as turnstile sees it.
type starter struct {
	deadlines *os.File
	reports   *os.File
	lines     chan string // closed when the starter has ended, or has become the command
}

// newStarter returns a starter, and the function that closes the process's own ends once it runs.
func newStarter(cmd *exec.Cmd) (s *starter, started func(), err error) {
	program, err := self()
	if err != nil {
		return nil, nil, err
	}
	goRead, goWrite, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		goRead.Close()
		goWrite.Close()
		return nil, nil, err
	}
	cmd.Args = append([]string{starterName, cmd.Path}, cmd.Args...)
	cmd.Path = program
	cmd.ExtraFiles = []*os.File{goRead, reportWrite}
	s = &starter{goWrite, reportRead, make(chan string, 16)}
	return s, func() { goRead.Close(); reportWrite.Close() }, nil
}

// read passes the starter's lines on until there are no more.
func (s *starter) read() {
	defer close(s.lines)
	for lines := bufio.NewScanner(s.reports); lines.Scan(); {
		s.lines <- lines.Text()
	}
}

// start tells the starter to become the command, unless the deadline has passed then.
func (s *starter) start(deadline time.Duration) error {
	_, err := fmt.Fprintf(s.deadlines, "%d\n", int64(deadline))
	return err
}

// close frees the pipes. The starter must have ended, or become the command.
func (s *starter) close() {
	s.deadlines.Close()
	_ = s.reports.SetReadDeadline(time.Now())
	for range s.lines {
	}
	s.reports.Close()
}

// failure returns the error number in a line.
func failure(line string) (syscall.Errno, bool) {
	word, number, _ := strings.Cut(line, " ")
	n, err := strconv.Atoi(number)
	return syscall.Errno(n), word == lineFailed && err == nil
}

// isStarter reports whether this process is a starter.
func isStarter() bool { return len(os.Args) >= 3 && os.Args[0] == starterName }

// becomeCommand is the whole life of a starter. It returns its exit status if it does not become the command.
func becomeCommand() int {
	unix.CloseOnExec(starterGo)
	unix.CloseOnExec(starterReport)
	// The parent-death signal belongs to a thread. The thread that calls execve passes it on.
	runtime.LockOSThread()
	dieWithStarter()
	report := os.NewFile(starterReport, "report")
	deadlines := bufio.NewScanner(os.NewFile(starterGo, "deadlines"))
	for {
		fmt.Fprintln(report, lineReady)
		if !deadlines.Scan() {
			return starterStatus // turnstile has ended
		}
		deadline, _ := strconv.ParseInt(deadlines.Text(), 10, 64)
		if clock() >= time.Duration(deadline) {
			continue // turnstile decides whether there is another
		}
		var errno syscall.Errno
		errors.As(syscall.Exec(os.Args[1], os.Args[2:], os.Environ()), &errno)
		fmt.Fprintln(report, lineFailed, int(errno))
		return starterStatus
	}
}

// starterStatus is the exit status of a starter that has not become the command.
const starterStatus = 126
