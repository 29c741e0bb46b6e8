//go:build linux || darwin || freebsd

package supervise

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Signals that end the wait for a lock, those that only matter to the command, and those that stay ignored if the
// caller has ignored them.
var (
	early       = []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT}
	later       = []syscall.Signal{unix.SIGUSR1, unix.SIGUSR2}
	keptSignals = []syscall.Signal{unix.SIGTERM, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE, unix.SIGALRM}
)

// KeepIgnored ignores the signals that the caller has told this process to ignore, so that the command does too. A program
// calls it before it catches any signal.
func KeepIgnored() {
	mask := ignoredByParent()
	for _, sig := range keptSignals {
		if mask&(1<<(sig-1)) != 0 {
			signal.Ignore(sig)
		}
	}
}

// Signals catches the signals that turnstile passes on to a command.
type Signals struct{ c chan os.Signal }

// Catch begins to catch them. A caller that does so before it waits for a lock
// misses none between the wait and the command. The caller must call Stop.
//
// From then on, no SIGPIPE ends the process either: by default the Go runtime ends a process that writes to a standard error
// which nobody reads any more, and a mere warning would cost the lock.
func Catch() *Signals {
	catch(make(chan os.Signal, 1), unix.SIGPIPE)
	s := &Signals{make(chan os.Signal, 64)}
	catch(s.c, early...)
	catch(s.c, later...)
	return s
}

// catch leaves out signals that are ignored, as by nohup. Signals that are of no use to this process are caught and not
// ignored, since the command would inherit that.
func catch(c chan<- os.Signal, signals ...syscall.Signal) {
	for _, sig := range signals {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
}

// Stop ends the catching.
func (s *Signals) Stop() { signal.Stop(s.c) }
