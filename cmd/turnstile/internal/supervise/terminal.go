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
	file  *os.File      // nil: there is none
	own   int           // turnstile's process group
	modes *unix.Termios // as they were in the beginning; nil if they are not known
}

func openTerminal() *terminal {
	t := &terminal{own: unix.Getpgrp()}
	file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return t
	}
	t.file = file
	if _, err := t.foreground(); err != nil {
		file.Close()
		t.file = nil
		return t
	}
	t.modes, _ = unix.IoctlGetTermios(int(file.Fd()), getModes)
	return t
}

// foreground returns the group that the terminal serves.
func (t *terminal) foreground() (int, error) {
	if t.file == nil {
		return 0, os.ErrNotExist
	}
	return unix.IoctlGetInt(int(t.file.Fd()), unix.TIOCGPGRP)
}

// serves reports whether the terminal serves a group.
func (t *terminal) serves(group int) bool {
	now, err := t.foreground()
	return err == nil && now == group
}

// closed reports whether there was a terminal, and it is gone.
func (t *terminal) closed() bool {
	_, err := t.foreground()
	return t.file != nil && err != nil
}

// give has the terminal serve a group. The kernel stops a process of another group that asks for
// that, unless it ignores SIGTTOU.
func (t *terminal) give(group int) {
	signal.Ignore(unix.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, group)
}

// takeBack closes the terminal once a group has ended. given says that the group still had it. killed
// says that the group could not restore the terminal's modes.
func (t *terminal) takeBack(given, killed bool) {
	if t.file == nil {
		return
	}
	defer t.file.Close()
	if given {
		t.give(t.own)
	}
	if given && killed && t.modes != nil {
		_ = unix.IoctlSetTermios(int(t.file.Fd()), setModes, t.modes)
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

func isTerminal(file *os.File) bool {
	_, err := unix.IoctlGetTermios(int(file.Fd()), getModes)
	return err == nil
}
