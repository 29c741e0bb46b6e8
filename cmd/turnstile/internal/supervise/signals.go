//go:build linux || darwin || freebsd

package supervise

import (
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// SignalOf returns the signal with a name, such as TERM or SIGTERM, if it is one that a command can be sent for its own
// purposes.
func SignalOf(name string) (syscall.Signal, bool) {
	sig := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
	return sig, slices.Contains(early, sig) || sig == unix.SIGUSR1 || sig == unix.SIGUSR2
}

// Signals catches the signals that turnstile passes on to a command.
type Signals struct{ c chan os.Signal }

// Signals that end the wait for a lock, and those that only matter once there is a command.
var (
	early = []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT}
	later = []syscall.Signal{unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGCONT, unix.SIGTSTP}
)

// Catch begins to catch SIGINT, SIGTERM, SIGHUP and SIGQUIT. A caller that does so before it waits for a lock
// misses none between the wait and the command. The caller must call Stop.
//
// From then on, no SIGPIPE ends the process either, and Stop does not change that: see outlivePipes.
func Catch() *Signals {
	outlivePipes()
	s := &Signals{make(chan os.Signal, 64)}
	s.add(early)
	return s
}

// outlivePipes has a write to a pipe that nobody reads any more fail. By default the Go runtime ends a process at such a
// write to its standard output or error, and a mere warning would cost the lock. The signal is caught and not ignored,
// since the command would inherit that.
func outlivePipes() {
	if !signal.Ignored(unix.SIGPIPE) {
		signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	}
}

// Stop ends the catching.
func (s *Signals) Stop() { signal.Stop(s.c) }

// more begins to catch the other signals.
func (s *Signals) more() { s.add(later) }

// add leaves out signals that turnstile was told to ignore, as by nohup.
func (s *Signals) add(signals []syscall.Signal) {
	for _, sig := range signals {
		if !signal.Ignored(sig) {
			signal.Notify(s.c, sig)
		}
	}
}

// pending returns a signal that came before there was a command.
func (s *Signals) pending() (syscall.Signal, bool) {
	for {
		select {
		case got := <-s.c:
			for _, sig := range early {
				if got == sig {
					return sig, true
				}
			}
		default:
			return 0, false
		}
	}
}
