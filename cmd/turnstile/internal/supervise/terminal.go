//go:build linux || darwin || freebsd

package supervise

import (
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is turnstile's controlling terminal. The command has a process group of its own, and a
// terminal serves one group at a time: it stops processes of other groups that read from it, and sends
// Ctrl-C to that group alone.
type terminal struct {
	file  *os.File
	own   int           // turnstile's process group
	modes *unix.Termios // as they were in the beginning; nil if they are not known
}

// openTerminal returns the controlling terminal, or nil if there is none.
func openTerminal() *terminal {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	t := &terminal{file: file, own: unix.Getpgrp()}
	if _, err := t.foreground(); err != nil {
		file.Close()
		return nil
	}
	t.modes, _ = unix.IoctlGetTermios(t.fd(), getModes)
	return t
}

func (t *terminal) fd() int { return int(t.file.Fd()) }

// foreground returns the group that the terminal serves.
func (t *terminal) foreground() (int, error) { return unix.IoctlGetInt(t.fd(), unix.TIOCGPGRP) }

// mine reports whether the terminal serves turnstile's own group.
func (t *terminal) mine() bool {
	if t == nil {
		return false
	}
	group, err := t.foreground()
	return err == nil && group == t.own
}

// serves reports whether the terminal serves a group.
func (t *terminal) serves(group int) bool {
	if t == nil {
		return false
	}
	now, err := t.foreground()
	return err == nil && now == group
}

// closed reports whether there was a terminal, and it is gone.
func (t *terminal) closed() bool {
	if t == nil {
		return false
	}
	_, err := t.foreground()
	return err != nil
}

// give has the terminal serve a group. The kernel stops a process of another group that asks for
// that, unless it ignores SIGTTOU.
func (t *terminal) give(group int) {
	signal.Ignore(unix.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.fd(), unix.TIOCSPGRP, group)
}

// takeBack closes the terminal once a group has ended. given says that the group still had it. killed
// says that the group could not restore the terminal's modes.
func (t *terminal) takeBack(given, killed bool) {
	if t == nil {
		return
	}
	defer t.file.Close()
	if !given {
		return
	}
	t.give(t.own)
	if killed && t.modes != nil {
		_ = unix.IoctlSetTermios(t.fd(), setModes, t.modes)
	}
}

// Interrupt sends SIGINT to turnstile's own process group, and so ends turnstile. The terminal would
// have done that at Ctrl-C, had the command been in that group. It is for the shell script that has
// started turnstile, which would go on otherwise.
func Interrupt() {
	signal.Reset(unix.SIGINT)
	_ = unix.Kill(0, unix.SIGINT)
	time.Sleep(time.Second) // another thread may be the one that gets it
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), getModes)
	return err == nil
}
